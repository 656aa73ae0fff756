/// Amounts by key, such as the uses of a resource by scope; a key without an amount is not stored. A pure value.
@frozen
package struct UsageCounts<Key: Hashable, Amount: AdditiveArithmetic> {
    @usableFromInline var amounts: [Key: Amount] = [:]

    @inlinable package init() {}

    /// The number of keys with an amount.
    @inlinable package var count: Int { amounts.count }
    @inlinable package var isEmpty: Bool { amounts.isEmpty }
    /// The keys with an amount.
    @inlinable package var keys: some Collection<Key> { amounts.keys }

    @inlinable package subscript(key: Key) -> Amount { amounts[key] ?? .zero }

    @inlinable package mutating func add(_ amount: Amount, to key: Key) {
        let sum = self[key] + amount
        amounts[key] = sum == .zero ? nil : sum
    }

    @inlinable package mutating func remove(_ amount: Amount, from key: Key) { add(.zero - amount, to: key) }
}

extension UsageCounts: Sendable where Key: Sendable, Amount: Sendable {}

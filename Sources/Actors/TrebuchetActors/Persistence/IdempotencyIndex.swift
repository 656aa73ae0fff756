internal import Platform

/// The `@Idempotent` calls that previous owners of an actor have started, as its log contains them. A delayed node may still
/// deliver one of them as if for the first time.
package struct IdempotencyIndex: Sendable {
    private var known: [ByteText: Set<UInt64>] = [:]
    /// The number up to which calls were deleted, by connection.
    private var deletedThrough: [ByteText: UInt64] = [:]

    package init() {}

    package mutating func insert(_ key: StateKey) {
        guard let (connection, number) = IdempotencyNamespace.call(key) else { return }
        known[ByteText(connection), default: []].insert(number)
    }

    /// Records that calls of a connection up to a number may be included.
    package mutating func recordEvictedCalls(_ connection: String, upTo number: UInt64) {
        deletedThrough[ByteText(connection)] = number
    }

    package func contains(_ call: IdempotencyRecord) -> Bool { contains(call.key) }

    func contains(_ key: StateKey) -> Bool {
        guard !known.isEmpty || !deletedThrough.isEmpty, let (connection, number) = IdempotencyNamespace.call(key)
        else {
            return false
        }
        let name = ByteText(connection)
        return known[name]?.contains(number) ?? false || deletedThrough[name].map { number <= $0 } ?? false
    }
}

internal import Platform

/// Which `@Idempotent` calls of an actor its owners before have begun, as its log has them: one of them may still come as if for the
/// first time, from a node that has stood still.
package struct EarlierCalls: Sendable {
    private var known: [ByteText: Set<UInt64>] = [:]
    /// By connection, up to which number calls were let go of.
    private var gone: [ByteText: UInt64] = [:]

    package init() {}

    package mutating func add(_ key: StateKey) {
        guard let (connection, number) = CallNamespace.call(key) else { return }
        known[ByteText(connection), default: []].insert(number)
    }

    /// Calls of a connection up to a number may be among them.
    package mutating func add(_ connection: String, upTo number: UInt64) { gone[ByteText(connection)] = number }

    package func contains(_ call: KeptCall) -> Bool { contains(call.key) }

    func contains(_ key: StateKey) -> Bool {
        guard !known.isEmpty || !gone.isEmpty, let (connection, number) = CallNamespace.call(key) else { return false }
        let name = ByteText(connection)
        return known[name]?.contains(number) ?? false || gone[name].map { number <= $0 } ?? false
    }
}

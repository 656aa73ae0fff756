/// The handoff state of an actor for its next owner node: small named values, written after the actor has changed them.
/// Responses of its calls wait until earlier values are written; stream updates wait only if they use `show`.
///
/// `@unchecked Sendable`: accessed only on the reactor of its actor, by the actor and by its persistence.
package final class HandoffState: @unchecked Sendable {
    /// The maximum number of bytes in one write; a coordination store accepts no larger entry.
    private static let maximumBytes = 768 << 10

    private let namespace: String
    private let actor: String
    private weak var states: PersistedStates?
    /// The values to write, in `order` of their changes; nil deletes.
    private var pendingValues: [String: [UInt8]?] = [:]
    private var order: [String] = []
    /// Set after the handoff state has ended; further values are ignored.
    private(set) var isOver = false
    private var writing: [String: [UInt8]?] = [:]
    private var writingOrder: [String] = []

    init(_ namespace: String, of actor: String, by states: PersistedStates) {
        self.namespace = namespace
        self.actor = actor
        self.states = states
    }

    /// Sets a value; nil deletes it.
    ///
    /// - Parameter value: at most 256 KiB.
    package func setValue(_ value: [UInt8]?, as name: String) {
        guard !isOver else { return }
        if pendingValues.updateValue(value, forKey: name) == nil { order.append(name) }
        states?.didChange()
    }

    /// Ends the handoff state. Values set before are still written.
    package func close() { isOver = true }

    /// Runs `body` after all values set before are written, with retries after failures. It does not run if another node owns
    /// the actor by then.
    package func runAfterWrites(_ body: @escaping () -> Void) {
        guard let states else { return body() }
        // No later capture contains it: after a failed write it waits for the next one.
        states.publishAfterWrite(while: { true }, body)
    }

    /// Returns the next writes.
    func changes() -> [StateWrite] {
        var (bytes, count) = (0, 0)
        for name in order {
            let size = name.utf8.count + (pendingValues[name]??.count ?? 0) + 128
            guard count == 0 || bytes + size <= Self.maximumBytes else { break }
            (bytes, count) = (bytes + size, count + 1)
        }
        let names = order.prefix(count)
        writingOrder = Array(names)
        writing = [:]
        for name in names { writing[name] = .some(pendingValues.removeValue(forKey: name) ?? nil) }
        order.removeFirst(count)
        return writingOrder.map { name in
            let key = StateKey(namespace, "\(actor).\(name)", partition: actor)
            return writing[name]?.map { .put($0, key) } ?? .delete(key)
        }
    }

    /// True if values remain after the returned ones.
    var hasMore: Bool { !order.isEmpty }

    /// Confirms that the returned writes are stored.
    func didWrite() { (writing, writingOrder) = ([:], []) }

    /// Schedules the returned writes again after a failure or an unknown outcome. Later values take precedence.
    func scheduleRewrite() {
        let rewritten = writingOrder.filter { pendingValues[$0] == nil }
        for name in rewritten { pendingValues[name] = writing[name] }
        order = rewritten + order
        (writing, writingOrder) = ([:], [])
    }

    /// Returns the name of a stored value.
    static func name(_ stored: String, of actor: String) -> String {
        String(decoding: stored.utf8.dropFirst(actor.utf8.count + 1), as: UTF8.self)
    }
}

internal import Transports

/// The handoff state of an actor for its next owner node: small named values, written after the actor has changed them.
/// Responses of its calls wait until earlier values are written; stream updates wait only if they use `show`.
///
/// Only on the reactor of its actor, by the actor and by its persistence.
package final class HandoffState: Sendable {
    /// The maximum number of bytes in one write; a coordination store accepts no larger entry.
    private static let maximumBytes = 768 << 10

    private let namespace: String
    private let actor: String
    private weak let states: PersistedStates?
    private let values: LoopVariable<Values>

    /// The values that the store does not have yet.
    private struct Values {
        /// The values to write, in `order` of their changes; nil deletes.
        var pendingValues: [String: [UInt8]?] = [:]
        var order: [String] = []
        var isOver = false
        var writing: [String: [UInt8]?] = [:]
        var writingOrder: [String] = []

        /// Moves the values of the next write to `writing`.
        mutating func beginWrite() {
            var (bytes, count) = (0, 0)
            for name in order {
                let size = name.utf8.count + (pendingValues[name]??.count ?? 0) + 128
                guard count == 0 || bytes + size <= HandoffState.maximumBytes else { break }
                (bytes, count) = (bytes + size, count + 1)
            }
            writingOrder = Array(order.prefix(count))
            writing = [:]
            for name in writingOrder { writing[name] = .some(pendingValues.removeValue(forKey: name) ?? nil) }
            order.removeFirst(count)
        }

        /// Moves the values of the last write back, unless there are later ones.
        mutating func undoWrite() {
            let rewritten = writingOrder.filter { pendingValues[$0] == nil }
            for name in rewritten { pendingValues[name] = writing[name] }
            order = rewritten + order
            (writing, writingOrder) = ([:], [])
        }
    }

    init(_ namespace: String, of actor: String, by states: PersistedStates) {
        self.namespace = namespace
        self.actor = actor
        self.states = states
        values = LoopVariable(Values(), on: states.home.reactor)
    }

    /// True after the handoff state has ended; further values are ignored.
    var isOver: Bool { values.value.isOver }

    /// Sets a value; nil deletes it.
    ///
    /// - Parameter value: at most 256 KiB.
    package func setValue(_ value: [UInt8]?, as name: String) {
        guard !isOver else { return }
        if values.value.pendingValues.updateValue(value, forKey: name) == nil { values.value.order.append(name) }
        states?.didChange()
    }

    /// Ends the handoff state. Values set before are still written.
    package func close() { values.value.isOver = true }

    /// Runs `body` after all values set before are written, with retries after failures. It does not run if another node owns
    /// the actor by then.
    package func runAfterWrites(_ body: @escaping () -> Void) {
        guard let states else { return body() }
        // No later capture contains it: after a failed write it waits for the next one.
        states.publishAfterWrite(while: { true }, body)
    }

    /// Returns the next writes.
    func changes() -> [StateWrite] {
        values.value.beginWrite()
        let writing = values.value.writing
        return values.value.writingOrder.map { name in
            let key = StateKey(namespace, "\(actor).\(name)", partition: actor)
            return writing[name]?.map { .put($0, key) } ?? .delete(key)
        }
    }

    /// True if values remain after the returned ones.
    var hasMore: Bool { !values.value.order.isEmpty }

    /// Confirms that the returned writes are stored.
    func didWrite() { (values.value.writing, values.value.writingOrder) = ([:], []) }

    /// Schedules the returned writes again after a failure or an unknown outcome. Later values take precedence.
    func scheduleRewrite() { values.value.undoWrite() }

    /// Returns the name of a stored value.
    static func name(_ stored: String, of actor: String) -> String {
        String(decoding: stored.utf8.dropFirst(actor.utf8.count + 1), as: UTF8.self)
    }
}

/// What an actor keeps of itself where it is kept for its next owner: small values by names, which are written behind what the actor
/// does. Answers of its calls wait until what was noted before them is written; what it shows does not, unless it is shown by `show`.
///
/// `@unchecked Sendable`: touched on the reactor of its actor alone.
package final class ActorNotes: @unchecked Sendable {
    /// Bytes that are written at once: an engine takes no larger entry.
    private static let mostBytes = 768 << 10

    private let namespace: String
    private let actor: String
    private weak var states: PersistedStates?
    /// What is to be written, by names in the order in which they were noted; nil deletes.
    private var noted: [String: [UInt8]?] = [:]
    private var order: [String] = []
    /// Whether nothing of it is to be kept.
    private(set) var isOver = false
    private var writing: [String: [UInt8]?] = [:]
    private var writingOrder: [String] = []

    init(_ namespace: String, of actor: String, by states: PersistedStates) {
        self.namespace = namespace
        self.actor = actor
        self.states = states
    }

    /// Keeps a value under a name; nil lets go of it.
    ///
    /// - Parameter value: at most 256 KiB.
    package func note(_ value: [UInt8]?, as name: String) {
        guard !isOver else { return }
        if noted.updateValue(value, forKey: name) == nil { order.append(name) }
        states?.didChange()
    }

    /// Nothing is kept of the actor any more, once what was noted is written.
    package func end() { isOver = true }

    /// Runs `body` when all notes up to now are written, after as many attempts as that takes. It does not run where another node owns
    /// the actor by then.
    package func show(_ body: @escaping () -> Void) {
        guard let states else { return body() }
        // No later capture contains it: after a failed write it waits for the next one.
        states.show(while: { true }, body)
    }

    /// What is to be written now.
    func changes() -> [StateWrite] {
        var (bytes, count) = (0, 0)
        for name in order {
            let size = name.utf8.count + (noted[name]??.count ?? 0) + 128
            guard count == 0 || bytes + size <= Self.mostBytes else { break }
            (bytes, count) = (bytes + size, count + 1)
        }
        let names = order.prefix(count)
        writingOrder = Array(names)
        writing = [:]
        for name in names { writing[name] = .some(noted.removeValue(forKey: name) ?? nil) }
        order.removeFirst(count)
        return writingOrder.map { name in
            let key = StateKey(namespace, "\(actor).\(name)", partition: actor)
            return writing[name]?.map { .put($0, key) } ?? .delete(key)
        }
    }

    /// Whether there is more than was given.
    var hasMore: Bool { !order.isEmpty }

    /// What was given is kept.
    func didWrite() { (writing, writingOrder) = ([:], []) }

    /// What was given was not kept, or nobody knows. Later values count.
    func writeAgain() {
        let again = writingOrder.filter { noted[$0] == nil }
        for name in again { noted[name] = writing[name] }
        order = again + order
        (writing, writingOrder) = ([:], [])
    }

    /// The name that a stored value was noted under.
    static func name(_ stored: String, of actor: String) -> String {
        String(decoding: stored.utf8.dropFirst(actor.utf8.count + 1), as: UTF8.self)
    }
}

/// Saves that wait to be handed to a key, and whether somebody is handing one over.
///
/// One thread at a time hands over, so that the last save has the newest value. Others leave their wish to that thread.
struct SaveQueue: Sendable {
    typealias Waiter = @Sendable (Result<Void, any Error>) -> Void

    struct Save: Sendable {
        var context: SaveContext
        var waiters: [Waiter] = []
    }

    private var wanted: Save?
    private var isHandingOver = false

    /// True when the caller is the one to hand over.
    mutating func add(_ context: SaveContext, _ waiter: Waiter?) -> Bool {
        var save = wanted ?? Save(context: context)
        if context == .userInitiated { save.context = .userInitiated }
        if let waiter { save.waiters.append(waiter) }
        wanted = save
        defer { isHandingOver = true }
        return !isHandingOver
    }

    /// Whether all has been handed over.
    var isEmpty: Bool { !isHandingOver }

    /// Nil when there is no more to hand over.
    mutating func next() -> Save? {
        if wanted == nil { isHandingOver = false }
        return wanted.take()
    }
}

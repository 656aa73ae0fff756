/// The saves that wait for a key, with a flag for a thread that hands them over.
///
/// Only one thread at a time hands saves over, so that the last save has the newest value. Other threads queue theirs
/// for it.
struct SaveQueue: Sendable {
    typealias Waiter = @Sendable (Result<Void, any Error>) -> Void

    /// A save with the callers that wait for it.
    struct Save: Sendable {
        var context: SaveContext
        var waiters: [Waiter] = []
    }

    private var pending: Save?
    private var isSaving = false

    /// Adds a save. Returns true if the caller must hand over.
    mutating func enqueueSave(_ context: SaveContext, _ waiter: Waiter?) -> Bool {
        var save = pending ?? Save(context: context)
        if context == .userInitiated { save.context = .userInitiated }
        if let waiter { save.waiters.append(waiter) }
        pending = save
        defer { isSaving = true }
        return !isSaving
    }

    /// True when all saves have been handed over.
    var isEmpty: Bool { !isSaving }

    /// Returns the next save; nil when there is none, which ends the handover.
    mutating func next() -> Save? {
        if pending == nil { isSaving = false }
        return pending.take()
    }
}

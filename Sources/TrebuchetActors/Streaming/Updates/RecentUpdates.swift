/// What is kept of the last updates of a stream, where they are made and with each broadcaster: the one place that knows them.
package struct RecentUpdates: Sendable {
    /// What the next one may be sent as the difference from.
    var newest: StateUpdate?
    /// The last differences, for those who are a few versions behind.
    var patches = PatchHistory()
    /// The last updates, where none may be left out.
    var backlog: Backlog?

    /// - Parameters:
    ///   - buffer: updates that are kept, where none may be left out.
    ///   - position: the number of the last update before those that come.
    init(_ buffer: Int?, position: UInt64) {
        backlog = buffer.map { Backlog(limit: $0, position: position) }
    }

    mutating func append(_ update: StateUpdate) {
        newest = update
        patches.remember(update)
        backlog?.append(update)
    }

    /// Begins where an earlier process ended.
    ///
    /// - Parameters:
    ///   - missed: the last updates, for those who come back; oldest first, without their values.
    ///   - version: the last one.
    mutating func begin(with missed: [StateUpdate], at version: UInt64, wholeByteCount: Int) {
        backlog = backlog.map { Backlog(limit: $0.limit, position: missed.first?.patch?.base ?? version) }
        for update in missed { append(update) }
        newest = StateUpdate(sequence: version, current: nil, patch: nil, wholeByteCount: wholeByteCount)
    }

    /// Nobody needs them, or the next one is no difference from them.
    mutating func forget() {
        newest = nil
        patches = PatchHistory()
        backlog?.removeAll()
    }
}

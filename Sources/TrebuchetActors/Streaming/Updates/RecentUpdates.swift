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

    /// Nobody needs them, or the next one is no difference from them.
    mutating func forget() {
        newest = nil
        patches = PatchHistory()
        backlog?.removeAll()
    }
}

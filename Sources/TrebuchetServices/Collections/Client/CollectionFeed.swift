/// What shows a collection in a shared value.
protocol CollectionFeed: AnyObject, Sendable {
    var query: CollectionQuery { get }
    /// The last write that its result shows: -1 before there is a result, unless there will be none.
    var seen: Int { get }

    /// Shows what there is now.
    func refresh()
    /// Shows that a write was refused for which nobody waits.
    func report(_ error: any Error)
}

/// What shows a collection in a shared value.
protocol CollectionFeed: AnyObject, Sendable {
    var query: CollectionQuery { get }
    /// The last write that its result shows: -1 before the server has said anything, unless it will not.
    var seen: Int { get }

    /// The server has answered a write: which one the results of this connection's queries show, by their numbers, and that they show
    /// what there is up to another one.
    func isTold(_ shown: [String: Int], through revision: Int)
    /// Shows what there is now.
    func refresh()
    /// Shows that a write was refused for which nobody waits, if it was made as who is shown.
    func report(_ error: any Error, of account: ClientAccount)
    /// Shows what there is for who is signed in now.
    func accountChanged()
}

/// A receiver of a collection's state for a shared value.
protocol CollectionObserver: AnyObject, Sendable {
    var query: CollectionQuery { get }
    /// The newest write that its result includes: -1 before the first response of the server, unless none will come.
    var seen: Int { get }

    /// Handles the positions in the response to a write: `shown` has the newest write in each query's result, by query number.
    /// Those results are complete up to `revision`.
    func applyPositions(_ shown: [String: Int], through revision: Int)
    /// Renders the current state.
    func refresh()
    /// Reports a refused write that no caller waits for, if its account is the shown one.
    func report(_ error: any Error, of account: ClientAccount)
    /// Renders the state of the account that is signed in now.
    func accountChanged()
}

internal import TrebuchetActors

/// The lives that a log of an actor has had: each node that goes on with it begins one. An engine that fails over may have lost what was
/// written last, so who has seen a version of an earlier life goes on from there only if the log has it.
struct LogLives: Equatable {
    /// More are forgotten, the oldest first: who comes back from one of them gets the whole value.
    static let mostEarlier = 64

    private(set) var current: String
    /// The oldest first.
    var earlier: [StreamLife] = []

    init(_ current: String) { self.current = current }

    /// Another life begins.
    ///
    /// - Parameter last: the number of the newest version.
    mutating func begin(_ epoch: String, after last: UInt64) {
        earlier.append(StreamLife(epoch: current, last: last))
        if earlier.count > Self.mostEarlier { earlier.removeFirst() }
        current = epoch
    }
}

/// The lives of a log: each process, or owner, that continues it begins one. A store that was restored, or that failed over, may have lost what
/// was written last. A client that has seen a version of an earlier life resumes from there only if the log has that version.
package struct LogLives: Equatable, Sendable {
    /// The number of earlier lives that are kept. Clients of older ones get the whole value.
    package static let mostEarlier = 64

    /// The epoch of the life that goes on.
    package private(set) var current: String
    /// The lives before, the oldest first.
    package private(set) var earlier: [StreamLife]

    /// - Parameters:
    ///   - current: the epoch of the life that goes on.
    ///   - earlier: the lives before, the oldest first.
    package init(_ current: String, after earlier: [StreamLife] = []) {
        self.current = current
        self.earlier = earlier
    }

    /// Begins another life.
    ///
    /// - Parameter last: the number of the newest version.
    package mutating func begin(_ epoch: String, after last: UInt64) {
        earlier.append(StreamLife(epoch: current, last: last))
        if earlier.count > Self.mostEarlier { earlier.removeFirst() }
        current = epoch
    }
}

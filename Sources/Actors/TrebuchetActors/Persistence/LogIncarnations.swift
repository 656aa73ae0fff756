/// The incarnations of a log: each process or owner that continues it starts one. A store that was restored, or that failed
/// over, may have lost the last writes. A client that has seen a version of an earlier incarnation resumes from there only if
/// the log contains that version.
package struct LogIncarnations: Equatable, Sendable {
    /// The number of earlier incarnations that are kept. Clients of older ones receive the whole value.
    package static let maximumEarlierIncarnations = 64

    /// The epoch of the current incarnation.
    package private(set) var current: String
    /// The earlier incarnations, the oldest first.
    package private(set) var earlier: [StreamIncarnation]

    /// Creates the list of incarnations.
    ///
    /// - Parameters:
    ///   - current: the epoch of the current incarnation.
    ///   - earlier: the earlier incarnations, the oldest first.
    package init(_ current: String, after earlier: [StreamIncarnation] = []) {
        self.current = current
        self.earlier = earlier
    }

    /// Starts another incarnation.
    ///
    /// - Parameter last: the number of the newest version.
    package mutating func startIncarnation(_ epoch: String, after last: UInt64) {
        earlier.append(StreamIncarnation(epoch: current, lastVersion: last))
        if earlier.count > Self.maximumEarlierIncarnations { earlier.removeFirst() }
        current = epoch
    }
}

internal import Synchronization

/// A position in the events of a property, after one of them. A program stores it to resume from there after a restart.
///
/// `EventStream.bookmark` returns it, and `observeMoves(since:)` accepts it. Numbers are comparable within one epoch.
public struct EventBookmark: Codable, Hashable, Sendable {
    /// The stream incarnation; it changes when the numbering of the events restarts.
    public let epoch: String
    /// The number of the last event before the position; 0 before the first.
    public let sequence: UInt64

    private enum CodingKeys: String, CodingKey { case epoch, sequence = "number" }

    /// Creates a bookmark from its stored parts.
    public init(epoch: String, sequence: UInt64) {
        self.epoch = epoch
        self.sequence = sequence
    }
}

/// The position of the readers of an event stream. Accessed on any thread.
package final class EventReadPosition: Sendable {
    private let lockedBookmark: Mutex<EventBookmark?>

    /// Creates a position.
    ///
    /// - Parameter since: the initial position; nil if it is not known yet.
    init(_ since: EventBookmark?) { lockedBookmark = Mutex(since) }

    var bookmark: EventBookmark? { lockedBookmark.withLock { $0 } }

    /// Sets the initial position when the stream starts or resumes.
    package func setStart(at bookmark: EventBookmark) { lockedBookmark.withLock { $0 = $0 ?? bookmark } }

    /// Moves the position past an event that a reader has received.
    func didRead(_ bookmark: EventBookmark?) { if let bookmark { lockedBookmark.withLock { $0 = bookmark } } }
}

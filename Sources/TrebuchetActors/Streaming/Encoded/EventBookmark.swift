internal import Synchronization

/// A place in the events of a property, behind one of them: what a program keeps to go on from there when it is started again.
///
/// `EventStream.bookmark` gives it, and `observeMoves(since:)` takes it. Numbers can be compared within one epoch.
public struct EventBookmark: Codable, Hashable, Sendable {
    /// The life of the stream: another one when its events are counted anew.
    public let epoch: String
    /// Of the last event before the place; 0 before the first.
    public let number: UInt64

    /// A place that was kept in a form of your own.
    public init(epoch: String, number: UInt64) {
        self.epoch = epoch
        self.number = number
    }
}

/// How far the readers of a stream of events have come. From anywhere.
package final class EventPlace: Sendable {
    private let place: Mutex<EventBookmark?>

    /// - Parameter since: where they begin; nil when that is not known yet.
    init(_ since: EventBookmark?) { place = Mutex(since) }

    var bookmark: EventBookmark? { place.withLock { $0 } }

    /// The stream has begun, or goes on.
    package func begin(at bookmark: EventBookmark) { place.withLock { $0 = $0 ?? bookmark } }

    /// A reader has got an event.
    func didRead(_ bookmark: EventBookmark?) { if let bookmark { place.withLock { $0 = bookmark } } }
}

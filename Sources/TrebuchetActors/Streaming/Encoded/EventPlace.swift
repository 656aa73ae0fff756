internal import Synchronization

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

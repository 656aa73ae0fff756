internal import Relays

/// Where the values of a stream go: to its readers, who hold the stream while this does not.
struct StreamSink {
    private let relay: StateRelay<EncodedStream.State>
    private let each: EventRelay<EncodedStream.Taken>?
    /// Whether there is no newest value, but only one event after the other.
    let isEvents: Bool
    /// Of events: how far their readers have come.
    private let place: EventPlace?
    /// Takes the values, when their type knows its changes.
    private(set) var kept: (any KeptState)?

    init(of stream: EncodedStream) {
        relay = stream.relay
        each = stream.each
        isEvents = stream.events != nil
        place = stream.place
        kept = stream.kept
    }

    /// The server has begun the stream, or goes on with it.
    func begin(at bookmark: EventBookmark) { place?.begin(at: bookmark) }

    /// The newest value in JSON, unless it is kept as what it is.
    var newest: [UInt8]? { relay.currentValue.update }

    /// - Parameter bookmark: behind an event.
    func take(_ text: [UInt8], _ bookmark: EventBookmark? = nil) {
        kept?.take(text)
        relay.take(kept == nil && !isEvents ? text : nil)
        each?.send(EncodedStream.Taken(text: text, count: relay.currentValue.count, bookmark: bookmark))
    }

    /// Takes changes of a value that is kept; false when there is none, or they do not fit.
    func take(changes: [UInt8]) -> Bool {
        guard let kept, kept.take(changes: changes) else { return false }
        relay.take(nil)
        return true
    }

    /// From now on values are put together as JSON.
    mutating func stopKeeping() { kept = nil }

    func end(_ outcome: StreamOutcome) {
        relay.end(outcome)
        each?.finish()
    }
}

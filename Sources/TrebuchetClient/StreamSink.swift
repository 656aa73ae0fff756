internal import Relays

/// The delivery of a stream's values to its readers. They retain the stream; the sink does not.
struct StreamSink {
    private let relay: StateRelay<EncodedStream.State>
    private let each: EventRelay<EncodedStream.EncodedValue>?
    /// True for events, which are all delivered, instead of a newest value.
    let isEvents: Bool
    /// The progress of the readers of events.
    private let place: EventReadPosition?
    /// The storage of values whose type supports incremental changes.
    private(set) var kept: (any IncrementalState)?

    init(of stream: EncodedStream) {
        relay = stream.relay
        each = stream.each
        isEvents = stream.events != nil
        place = stream.place
        kept = stream.kept
    }

    /// Handles the start or the resume of the stream.
    func begin(at bookmark: EventBookmark) { place?.begin(at: bookmark) }

    /// The newest value in JSON, unless it is stored as its type.
    var newest: [UInt8]? { relay.currentValue.update }

    /// Delivers a value or an event.
    ///
    /// - Parameter bookmark: the position after an event.
    func take(_ text: [UInt8], _ bookmark: EventBookmark? = nil) {
        kept?.take(text)
        relay.take(kept == nil && !isEvents ? text : nil)
        each?.send(EncodedStream.EncodedValue(text: text, count: relay.currentValue.count, bookmark: bookmark))
    }

    /// Applies changes to a stored value. Returns false if there is none, or if they do not fit.
    func take(changes: [UInt8]) -> Bool {
        guard let kept, kept.take(changes: changes) else { return false }
        relay.take(nil)
        return true
    }

    /// Stops storing values as their type; they are assembled as JSON from now on.
    mutating func stopKeeping() { kept = nil }

    func end(_ outcome: StreamOutcome) {
        relay.end(outcome)
        each?.finish()
    }
}

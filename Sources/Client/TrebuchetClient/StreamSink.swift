internal import Relays

/// The delivery of a stream's values to its readers. They retain the stream; the sink does not.
struct StreamSink {
    private let relay: StateRelay<EncodedStream.State>
    private let each: EventRelay<EncodedStream.EncodedValue>?
    /// True for events, which are all delivered, instead of a newest value.
    let isEvents: Bool
    /// The progress of the readers of events.
    private let position: EventReadPosition?
    /// The storage of values whose type supports incremental changes.
    private(set) var incrementalState: (any IncrementalState)?

    init(of stream: EncodedStream) {
        relay = stream.relay
        each = stream.each
        isEvents = stream.events != nil
        position = stream.position
        incrementalState = stream.incrementalState
    }

    /// Handles the start or the resume of the stream.
    func handleStart(at bookmark: EventBookmark) { position?.setStart(at: bookmark) }

    /// The newest value in JSON, unless it is stored as its type.
    var newest: [UInt8]? { relay.currentValue.update }

    /// Delivers a value or an event.
    ///
    /// - Parameter bookmark: the position after an event.
    func deliverValue(_ text: [UInt8], _ bookmark: EventBookmark? = nil) {
        incrementalState?.setValue(text)
        relay.setValue(incrementalState == nil && !isEvents ? text : nil)
        each?.send(EncodedStream.EncodedValue(text: text, count: relay.currentValue.count, bookmark: bookmark))
    }

    /// Applies changes to a stored value. Returns false if there is none, or if they do not fit.
    func applyChanges(_ changes: [UInt8]) -> Bool {
        guard let incrementalState, incrementalState.applyChanges(changes) else { return false }
        relay.setValue(nil)
        return true
    }

    /// Stops storing values as their type; they are assembled as JSON from now on.
    mutating func stopKeeping() { incrementalState = nil }

    func finish(_ outcome: StreamOutcome) {
        relay.finish(outcome)
        each?.finish()
    }
}

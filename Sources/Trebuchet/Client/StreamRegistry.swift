internal import Relays
internal import TrebuchetWire

/// The streams of a client: which message belongs to which, and which values are new.
///
/// A value counts only when its sequence number is greater than the last one of the same epoch; duplicates and late
/// ones are dropped.
struct StreamRegistry {
    private struct Entry {
        let relay: StateRelay<RemoteStream.State>
        /// Known once the server has started the stream.
        var streamID: String?
        var epoch = ""
        var lastSequence: UInt64 = 0
    }

    private var entries: [UInt64: Entry] = [:]
    private var numbers: [String: UInt64] = [:]

    /// Streams that have not ended.
    var count: Int { entries.count }

    mutating func createRemoteStream(callNumber: UInt64, relay: StateRelay<RemoteStream.State>) {
        entries[callNumber] = Entry(relay: relay)
    }

    /// The server has started a stream, or begins it anew with another epoch. Returns the streamID when nobody wants
    /// it any more, so that the server can be told.
    mutating func handleStreamStart(callNumber: UInt64, streamID: String, epoch: String) -> String? {
        guard var entry = entries[callNumber] else { return streamID }
        entry.streamID = streamID
        if entry.epoch != epoch { entry.lastSequence = 0 }
        entry.epoch = epoch
        entries[callNumber] = entry
        numbers[streamID] = callNumber
        return nil
    }

    /// Takes a value, if it is newer than the last one.
    @discardableResult
    mutating func handleStreamData(streamID: String, sequence: UInt64, data: UnsafeRawBufferPointer) -> Bool {
        guard let number = numbers[streamID], let last = entries[number]?.lastSequence, sequence > last else {
            return false
        }
        entries[number]?.lastSequence = sequence
        entries[number]?.relay.take(Array(data))
        return true
    }

    mutating func handleStreamEnd(streamID: String, reason: StreamEndReason) {
        guard let number = numbers[streamID] else { return }
        switch reason {
        case .completed, .clientUnsubscribed: end(number, .completed)
        case .actorTerminated: end(number, .failed(TrebuchetError(.actorNotFound, "the actor is gone")))
        case .serverDraining: end(number, .failed(TrebuchetError(.unavailable, "the server is shutting down")))
        default: end(number, .failed(TrebuchetError(.unavailable, "the stream ended: \(reason.rawValue)")))
        }
    }

    mutating func handleStreamError(streamID: String, error: TrebuchetError) {
        guard let number = numbers[streamID] else { return }
        end(number, .failed(error))
    }

    /// The invocation that was to start a stream was refused.
    mutating func fail(callNumber: UInt64, error: TrebuchetError) { end(callNumber, .failed(error)) }

    /// Forgets a stream that nobody reads. Returns its streamID when the server has started it.
    mutating func remove(callNumber: UInt64) -> String? {
        guard let entry = entries.removeValue(forKey: callNumber) else { return nil }
        if let streamID = entry.streamID { numbers[streamID] = nil }
        return entry.streamID
    }

    /// Ends all streams: the connection is gone.
    mutating func removeAll(_ error: TrebuchetError) {
        let ended = entries.values
        entries = [:]
        numbers = [:]
        for entry in ended { entry.relay.fail(error) }
    }

    private mutating func end(_ number: UInt64, _ outcome: StreamOutcome) {
        guard let entry = entries.removeValue(forKey: number) else { return }
        if let streamID = entry.streamID { numbers[streamID] = nil }
        entry.relay.end(outcome)
    }
}

internal import TrebuchetWire

/// The streams of a client: which message belongs to which, and which values are new.
///
/// A value counts only when its sequence number is greater than the last one of the same epoch; duplicates and late
/// ones are dropped. Streams outlive their connection: on the next one each is taken up where it was.
struct StreamRegistry {
    /// How a stream is begun on a connection.
    enum Beginning: Equatable {
        case invocation(StreamTarget)
        case resumption(streamID: String, StreamTarget, epoch: String, lastSequence: UInt64)
    }

    private struct Entry {
        var sink: StreamSink
        let target: StreamTarget
        /// Known once the server has started the stream.
        var streamID: String?
        var epoch = ""
        var lastSequence: UInt64 = 0
    }

    private var entries: [UInt64: Entry] = [:]
    /// Streams that the server has started on the connection of now, each once: what is here is the `streamID` of its entry.
    private var numbers: [String: UInt64] = [:]

    /// Streams that have not ended.
    var count: Int { entries.count }

    /// Of these, those that the server has not started on the connection of now.
    var beginningCount: Int { entries.count - numbers.count }

    /// Adds a stream, and gives what to ask for.
    ///
    /// - Parameter since: where its events begin; nil for the next one, and of a state.
    @discardableResult
    mutating func subscribe(
        callNumber: UInt64, target: StreamTarget, sink: StreamSink, since: EventBookmark? = nil
    ) -> Beginning {
        var entry = Entry(sink: sink, target: target)
        if let since { (entry.epoch, entry.lastSequence) = (since.epoch, since.number) }
        entries[callNumber] = entry
        return beginning(of: entry)
    }

    private func beginning(of entry: Entry) -> Beginning {
        // What was seen over no connection of this client had no name here.
        guard let streamID = entry.streamID ?? (entry.epoch.isEmpty ? nil : "new") else {
            return .invocation(entry.target)
        }
        return .resumption(
            streamID: streamID, entry.target, epoch: entry.epoch, lastSequence: entry.lastSequence)
    }

    /// There is a new connection: what to ask for on it, in the order in which the streams were made.
    mutating func beginAnew() -> [(callNumber: UInt64, beginning: Beginning)] {
        numbers = [:]
        return entries.sorted { $0.key < $1.key }.map { ($0, beginning(of: $1)) }
    }

    /// The server has started a stream, or begins it anew with another epoch. Returns the streamID when nobody wants
    /// it any more, so that the server can be told.
    ///
    /// - Parameter position: the number of the last event before those that come.
    mutating func handleStreamStart(
        callNumber: UInt64, streamID: String, epoch: String, position: UInt64? = nil
    ) -> String? {
        guard var entry = entries[callNumber] else { return streamID }
        if entry.sink.isEvents, entry.epoch != epoch, !entry.epoch.isEmpty, position != entry.lastSequence {
            // The server should have said so.
            let text = "events were missed: the actor they come from was made anew"
            end(callNumber, .failed(TrebuchetError(.overflow, text)))
            return streamID
        }
        // A server that starts one twice has given it another name.
        forgetName(of: callNumber, entry)
        entry.streamID = streamID
        if entry.epoch != epoch { entry.lastSequence = position ?? 0 }
        entry.epoch = epoch
        entry.sink.begin(at: EventBookmark(epoch: epoch, number: entry.lastSequence))
        entries[callNumber] = entry
        numbers[streamID] = callNumber
        return nil
    }

    /// Takes a value, if it is newer than the last one.
    @discardableResult
    mutating func handleStreamData(streamID: String, sequence: UInt64, data: UnsafeRawBufferPointer) -> Bool {
        guard let number = numbers[streamID], let entry = entries[number], sequence > entry.lastSequence else {
            return false
        }
        if entry.sink.isEvents, sequence != entry.lastSequence + 1 {
            let text = "the events \(entry.lastSequence + 1) to \(sequence - 1) did not come"
            end(number, .failed(TrebuchetError(.overflow, text)))
            return false
        }
        entries[number]?.lastSequence = sequence
        // A filter that was forgotten while the connection was away may send what it has sent before.
        if entry.target.filter?.skipsEqual == true, entry.sink.newest?.elementsEqual(data) == true { return false }
        entry.sink.take(
            Array(data), entry.sink.isEvents ? EventBookmark(epoch: entry.epoch, number: sequence) : nil)
        return true
    }

    /// A stream that is no good any more on the connection of now, and what it is of: it is asked for again, whole.
    struct Anew: Equatable {
        let callNumber: UInt64
        let streamID: String
        let target: StreamTarget
    }

    /// Takes a value that is told as the difference from another one. Returns what to ask for anew when it cannot be made out.
    mutating func handleStreamPatch(
        streamID: String, sequence: UInt64, base: UInt64, patch: UnsafeRawBufferPointer, maximumBytes: Int
    ) -> Anew? {
        guard let number = numbers[streamID], let entry = entries[number], sequence > entry.lastSequence else {
            return nil
        }
        if base == entry.lastSequence, entry.sink.kept != nil {
            if entry.sink.take(changes: Array(patch)) {
                entries[number]?.lastSequence = sequence
                return nil
            }
        } else if base == entry.lastSequence, let old = entry.sink.newest,
            let new = try? old.withUnsafeBytes({ try JSONPatch.apply(patch, to: $0, maximumBytes: maximumBytes) })
        {
            entries[number]?.lastSequence = sequence
            entry.sink.take(new)
            return nil
        }
        return beginAnew(number, streamID)
    }

    /// The changes of a stream do not fit the value that its readers have: it begins anew, and its values are put together
    /// as JSON from now on. Returns what to ask for anew, when there is something to ask.
    mutating func stopKeeping(_ number: UInt64) -> Anew? {
        guard let entry = entries[number], entry.sink.kept != nil else { return nil }
        entries[number]?.sink.stopKeeping()
        // Without a connection, or when it begins anew already, it will come whole.
        entries[number]?.epoch = ""
        entries[number]?.lastSequence = 0
        guard let streamID = entry.streamID, numbers[streamID] == number else { return nil }
        return beginAnew(number, streamID)
    }

    /// Nothing of the stream counts until the server has begun it anew, with a whole value.
    private mutating func beginAnew(_ number: UInt64, _ streamID: String) -> Anew? {
        guard let entry = entries[number] else { return nil }
        numbers[streamID] = nil
        entries[number]?.streamID = nil
        entries[number]?.epoch = ""
        return Anew(callNumber: number, streamID: streamID, target: entry.target)
    }

    mutating func handleStreamEnd(streamID: String, reason: StreamEndReason) {
        guard let number = numbers[streamID] else { return }
        switch reason {
        case .completed, .clientUnsubscribed: end(number, .completed)
        case .actorTerminated: end(number, .failed(TrebuchetError(.actorNotFound, "the actor is gone")))
        // It goes on with the next connection, as after one that breaks.
        case .serverDraining, .connectionClosed: numbers[streamID] = nil
        default: end(number, .failed(TrebuchetError(.unavailable, "the stream ended: \(reason.rawValue)")))
        }
    }

    mutating func handleStreamError(streamID: String, error: TrebuchetError) {
        if let number = numbers[streamID] { end(number, .failed(error)) }
    }

    /// Whether it has begun on any connection.
    func hadBegun(callNumber: UInt64) -> Bool { entries[callNumber]?.streamID != nil }

    /// What was to start a stream was refused.
    mutating func fail(callNumber: UInt64, error: TrebuchetError) { end(callNumber, .failed(error)) }

    /// Forgets a stream that nobody reads. Returns its streamID when the server has started it.
    mutating func remove(callNumber: UInt64) -> String? {
        guard let entry = entries.removeValue(forKey: callNumber) else { return nil }
        return forgetName(of: callNumber, entry) ? entry.streamID : nil
    }

    /// Ends all streams: there will be no connection.
    mutating func removeAll(_ error: TrebuchetError) {
        let ended = entries.values
        entries = [:]
        numbers = [:]
        for entry in ended { entry.sink.end(.failed(error)) }
    }

    private mutating func end(_ number: UInt64, _ outcome: StreamOutcome) {
        guard let entry = entries.removeValue(forKey: number) else { return }
        forgetName(of: number, entry)
        entry.sink.end(outcome)
    }

    /// The name that a stream has had; on the connection of now it may be another's. Returns whether it was this one's there.
    @discardableResult
    private mutating func forgetName(of number: UInt64, _ entry: Entry) -> Bool {
        guard let streamID = entry.streamID, numbers[streamID] == number else { return false }
        numbers[streamID] = nil
        return true
    }
}

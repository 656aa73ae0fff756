internal import TrebuchetWire

/// The streams of a client: it assigns messages to streams and drops values that are not new.
///
/// A value counts only if its sequence number is greater than the last one of the same epoch; duplicates and late values are
/// dropped. Streams outlive their connection: they are resumed on the next one.
struct StreamRegistry {
    /// The request that starts or resumes a stream on a connection.
    enum StartMode: Equatable {
        case invocation(StreamTarget)
        case resumption(streamID: String, StreamTarget, epoch: String, lastSequence: UInt64)
    }

    /// A registered stream.
    private struct Entry {
        var sink: StreamSink
        let target: StreamTarget
        /// The server's name for the stream, known once it has started.
        var streamID: String?
        var epoch = ""
        var lastSequence: UInt64 = 0
    }

    private var entries: [UInt64: Entry] = [:]
    /// The streams that the server has started on the current connection, by the `streamID` of their entry.
    private var numbers: [String: UInt64] = [:]

    /// The number of streams that have not ended.
    var count: Int { entries.count }

    /// The number of streams that the server has not started on the current connection.
    var startingCount: Int { entries.count - numbers.count }

    /// Adds a stream, and returns the request for it.
    ///
    /// - Parameter since: the position after which events are delivered; nil for the next event, and for a state.
    @discardableResult
    mutating func subscribe(
        callNumber: UInt64, target: StreamTarget, sink: StreamSink, since: EventBookmark? = nil
    ) -> StartMode {
        var entry = Entry(sink: sink, target: target)
        if let since { (entry.epoch, entry.lastSequence) = (since.epoch, since.sequence) }
        entries[callNumber] = entry
        return startMode(of: entry)
    }

    private func startMode(of entry: Entry) -> StartMode {
        // A bookmark from another client comes without a `streamID`.
        guard let streamID = entry.streamID ?? (entry.epoch.isEmpty ? nil : "new") else {
            return .invocation(entry.target)
        }
        return .resumption(
            streamID: streamID, entry.target, epoch: entry.epoch, lastSequence: entry.lastSequence)
    }

    /// Returns the requests for a new connection, in the order in which the streams were created.
    mutating func restartAll() -> [(callNumber: UInt64, startMode: StartMode)] {
        numbers = [:]
        return entries.sorted { $0.key < $1.key }.map { ($0, startMode(of: $1)) }
    }

    /// Handles the start of a stream, or its restart with another epoch. Returns the `streamID` if the stream has no reader, so
    /// that the server can be notified.
    ///
    /// - Parameter position: the number of the event before the next one.
    mutating func handleStreamStart(
        callNumber: UInt64, streamID: String, epoch: String, position: UInt64? = nil
    ) -> String? {
        guard var entry = entries[callNumber] else { return streamID }
        if entry.sink.isEvents, entry.epoch != epoch, !entry.epoch.isEmpty, position != entry.lastSequence {
            // The server should have reported this.
            let text = "events were missed: their actor was activated again"
            endStream(callNumber, .failed(TrebuchetError(.overflow, text)))
            return streamID
        }
        // A server that starts a stream twice assigns another name.
        forgetName(of: callNumber, entry)
        entry.streamID = streamID
        if entry.epoch != epoch { entry.lastSequence = position ?? 0 }
        entry.epoch = epoch
        entry.sink.handleStart(at: EventBookmark(epoch: epoch, sequence: entry.lastSequence))
        entries[callNumber] = entry
        numbers[streamID] = callNumber
        return nil
    }

    /// Delivers a value if it is newer than the last one.
    @discardableResult
    mutating func handleStreamData(streamID: String, sequence: UInt64, data: UnsafeRawBufferPointer) -> Bool {
        guard let number = numbers[streamID], let entry = entries[number], sequence > entry.lastSequence else {
            return false
        }
        if entry.sink.isEvents, sequence != entry.lastSequence + 1 {
            let (first, last) = (entry.lastSequence + 1, sequence - 1)
            let lost = first == last ? "event \(first) was" : "events \(first) to \(last) were"
            endStream(number, .failed(TrebuchetError(.overflow, "\(lost) not received")))
            return false
        }
        entries[number]?.lastSequence = sequence
        // A filter whose state was lost during the disconnection may send the last value again.
        if entry.target.filter?.skipsEqual == true, entry.sink.newest?.elementsEqual(data) == true { return false }
        entry.sink.deliverValue(
            Array(data), entry.sink.isEvents ? EventBookmark(epoch: entry.epoch, sequence: sequence) : nil)
        return true
    }

    /// A stream to be restarted with a whole value on the current connection.
    struct Resubscription: Equatable {
        let callNumber: UInt64
        let streamID: String
        let target: StreamTarget
    }

    /// Applies a delta. Returns the stream to restart if the delta does not apply.
    mutating func handleStreamPatch(
        streamID: String, sequence: UInt64, base: UInt64, patch: UnsafeRawBufferPointer, maximumBytes: Int
    ) -> Resubscription? {
        guard let number = numbers[streamID], let entry = entries[number], sequence > entry.lastSequence else {
            return nil
        }
        if base == entry.lastSequence, entry.sink.incrementalState != nil {
            if entry.sink.applyChanges(Array(patch)) {
                entries[number]?.lastSequence = sequence
                return nil
            }
        } else if base == entry.lastSequence, let old = entry.sink.newest,
            let new = try? old.withUnsafeBytes({ try JSONPatch.apply(patch, to: $0, maximumBytes: maximumBytes) })
        {
            entries[number]?.lastSequence = sequence
            entry.sink.deliverValue(new)
            return nil
        }
        return restartStream(number, streamID)
    }

    /// Handles changes that do not fit the readers' value: the stream restarts, and its values are assembled as JSON from now on.
    /// Returns the stream to restart, if a request is necessary.
    mutating func stopKeeping(_ number: UInt64) -> Resubscription? {
        guard let entry = entries[number], entry.sink.incrementalState != nil else { return nil }
        entries[number]?.sink.stopKeeping()
        // Without a connection, or during a restart, the next value will be whole.
        entries[number]?.epoch = ""
        entries[number]?.lastSequence = 0
        guard let streamID = entry.streamID, numbers[streamID] == number else { return nil }
        return restartStream(number, streamID)
    }

    /// Ignores messages of the stream until the server has restarted it with a whole value.
    private mutating func restartStream(_ number: UInt64, _ streamID: String) -> Resubscription? {
        guard let entry = entries[number] else { return nil }
        numbers[streamID] = nil
        entries[number]?.streamID = nil
        entries[number]?.epoch = ""
        return Resubscription(callNumber: number, streamID: streamID, target: entry.target)
    }

    mutating func handleStreamEnd(streamID: String, reason: StreamEndReason) {
        guard let number = numbers[streamID] else { return }
        switch reason {
        case .completed, .clientUnsubscribed: endStream(number, .completed)
        case .actorTerminated: endStream(number, .failed(TrebuchetError(.actorNotFound, "the actor no longer exists")))
        // The stream continues on the next connection, as after a lost one.
        case .serverDraining, .connectionClosed: numbers[streamID] = nil
        default: endStream(number, .failed(TrebuchetError(.unavailable, "the stream ended: \(reason.rawValue)")))
        }
    }

    mutating func handleStreamError(streamID: String, error: TrebuchetError) {
        if let number = numbers[streamID] { endStream(number, .failed(error)) }
    }

    /// Returns whether the stream has started on any connection.
    func hadBegun(callNumber: UInt64) -> Bool { entries[callNumber]?.streamID != nil }

    /// Handles the rejection of a stream.
    mutating func fail(callNumber: UInt64, error: TrebuchetError) { endStream(callNumber, .failed(error)) }

    /// The message that tells the server that a stream has no readers.
    enum Removal: Equatable {
        case end(streamID: String)
        /// The server has not started it on the current connection.
        case cancel(callNumber: UInt64)
    }

    /// Removes a stream without readers. Returns nil if it has ended.
    mutating func remove(callNumber: UInt64) -> Removal? {
        guard let entry = entries.removeValue(forKey: callNumber) else { return nil }
        guard forgetName(of: callNumber, entry), let streamID = entry.streamID else {
            return .cancel(callNumber: callNumber)
        }
        return .end(streamID: streamID)
    }

    /// Ends all streams, because there will be no connection.
    mutating func removeAll(_ error: TrebuchetError) {
        let ended = entries.values
        entries = [:]
        numbers = [:]
        for entry in ended { entry.sink.finish(.failed(error)) }
    }

    private mutating func endStream(_ number: UInt64, _ outcome: StreamOutcome) {
        guard let entry = entries.removeValue(forKey: number) else { return }
        forgetName(of: number, entry)
        entry.sink.finish(outcome)
    }

    /// Removes the name of a stream, which may belong to another stream on the current connection. Returns whether it was the
    /// name of this stream.
    @discardableResult
    private mutating func forgetName(of number: UInt64, _ entry: Entry) -> Bool {
        guard let streamID = entry.streamID, numbers[streamID] == number else { return false }
        numbers[streamID] = nil
        return true
    }
}

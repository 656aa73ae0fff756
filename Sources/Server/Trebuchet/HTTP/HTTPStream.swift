internal import Bytes
internal import Networking
internal import TrebuchetActors
internal import TrebuchetWire
internal import WebSockets

/// A stream over HTTP, as Server-Sent Events. Only on the reactor of the request.
final class HTTPStream: HTTPActorRequest {
    private var request: HTTPStreamRequest?
    private var isStarted = false
    /// The incarnation of the stream, and the last version that the client has.
    private var (epoch, last) = ("", UInt64(0))
    private var heartbeat: LoopTimer?
    /// True if something was written since the last beat.
    private var hasWritten = false
    /// The acknowledged bytes at the last beat that found more of them, and its time.
    private var acknowledged: UInt64 = 0
    private var progressAt: UInt64 = 0

    // MARK: The request

    override func readHead() throws(HTTPRejection) {
        let request = try HTTPStreamRequest(received.request.head)
        self.request = request
        if let last = request.last { (epoch, self.last) = (last.epoch, last.sequence) }
    }

    override var bodyBytes: (limit: Int, setting: String) { (0, "a stream has no body") }

    override func message(_ body: [UInt8]) throws(EnvelopeError) -> [UInt8] {
        guard let request else { throw EnvelopeError("no stream") }
        let type = shard.directory.type(of: ActorName(request.actor))
        // A filter that accepts everything replaces deltas by whole values. Events have none, and no deltas.
        let isEvents = type?.description.events.contains(request.target) == true
        return request.message(isState: !isEvents)
    }

    // MARK: Messages

    override func receive(_ message: borrowing Message) {
        let envelope = message.envelope
        switch message.kind {
        case .response:
            // A method is never called, since its name has parentheses.
            if envelope.pointee.hasError { fail(failure(message)) }
        case .streamStart:
            didStart(epoch: message.text(envelope.pointee.epoch), at: envelope.pointee.sequenceNumber)
        case .streamData:
            guard let number = envelope.pointee.sequenceNumber, !envelope.pointee.data.isAbsent else { return }
            let text = Self.event(number, message.bytes(envelope.pointee.data))
            send(number, count: text.count) { $0.append(text) }
        case .streamError:
            fail(
                HTTPProblem(
                    ErrorCode(rawValue: message.text(envelope.pointee.code)),
                    message.text(envelope.pointee.errorMessage),
                    retryAfterMilliseconds: envelope.pointee.retryAfterMilliseconds))
        case .streamEnd: didEndStream(message.text(envelope.pointee.reason))
        case .error:
            guard message.text(envelope.pointee.code) == ErrorCode.malformedEnvelope.rawValue else { return }
            fail(HTTPProblem(.malformedEnvelope, message.text(envelope.pointee.errorMessage)))
        default: break
        }
    }

    private func didStart(epoch: String, at number: UInt64?) {
        let isNew = epoch != self.epoch
        if isNew { (self.epoch, last) = (epoch, number ?? 0) }
        guard !isStarted else { return }
        isStarted = true
        var headers = HTTPProblem.fields(type: "text/event-stream")
        // nginx would collect the events.
        headers.add("X-Accel-Buffering", "no")
        shard.events.countHTTPRequest(status: 200)
        received.inOneWrite {
            received.beginStreaming(HTTPResponse(status: 200, headers: headers))
            // A client that reconnects before the first event resumes from here.
            if isNew, let number { write("id: \(epoch).\(number)\n\n") }
        }
        (acknowledged, progressAt) = (received.acknowledgedBytes ?? 0, shard.reactor.now)
        scheduleHeartbeat()
    }

    /// Ends the stream with an error.
    private func fail(_ problem: HTTPProblem) {
        guard isStarted else { return respond(problem) }
        end("event: error\ndata: \(String(decoding: problem.response.body, as: UTF8.self))\n\n")
    }

    private func didEndStream(_ reason: String) {
        guard isStarted else { return respond(HTTPProblem(.unavailable, "the stream ended: \(reason)")) }
        // The client continues at another server, or at this one after its restart.
        guard reason != StreamEndReason.serverDraining.rawValue else { return end("") }
        var data = ByteBuffer()
        JSONString.append(reason, to: &data)
        end("event: end\ndata: {\"reason\":\(String(decoding: data.bytes, as: UTF8.self))}\n\n")
    }

    override func didEnd(_ reason: String) { fail(HTTPProblem(.unavailable, "the server ended the stream: \(reason)")) }

    private func end(_ text: String) {
        guard !isAnswered else { return }
        heartbeat?.cancel()
        write(text)
        finish { received.endStreaming() }
    }

    // MARK: Output

    override var isWritable: Bool { received.isWritable }

    override func inOneWrite(_ body: () -> Void) { received.inOneWrite(body) }

    /// Sends a version whose text all clients share.
    override func send(shared: SharedBytes, headCount: Int, head: (inout ByteBuffer) -> Void) {
        guard let number = Self.number(inSuffix: shared.bytes) else { return }
        let event = shared.derived(Self.sharedForm) { suffix in
            let text = Self.event(number, StreamDataEncoding.data(inSuffix: suffix, sequence: number))
            return text.withUnsafeBytes { SharedBytes($0) }
        }
        send(number, count: event.count, shared: event) { _ in }
    }

    /// The number of the form of shared versions, which no other form has.
    private static let sharedForm = Int.min

    /// Sends an event whose text after the epoch has `count` bytes.
    private func send(
        _ number: UInt64, count: Int, shared: SharedBytes? = nil, _ text: (inout ByteBuffer) -> Void
    ) {
        guard isStarted, !isAnswered, number > last else { return }
        last = number
        hasWritten = true
        let head = Array("id: \(epoch).".utf8)
        received.write(head.count + count, shared: shared) { buffer in
            buffer.append(head)
            text(&buffer)
        }
    }

    private func write(_ text: String) {
        hasWritten = true
        let bytes = Array(text.utf8)
        received.write(bytes.count) { $0.append(bytes) }
    }

    /// Returns the text of an event after the epoch.
    private static func event(_ number: UInt64, _ json: UnsafeRawBufferPointer) -> [UInt8] {
        var text = Array("\(number)\ndata: ".utf8)
        text.reserveCapacity(text.count + json.count + 2)
        for byte in json {
            // A line break between the tokens of JSON begins another line of data.
            if byte == 0x0A { text += "\ndata: ".utf8 } else if byte != 0x0D { text.append(byte) }
        }
        text += "\n\n".utf8
        return text
    }

    /// Returns the number of the version in the shared part of its message (`StreamDataEncoding`).
    private static func number(inSuffix suffix: UnsafeRawBufferPointer) -> UInt64? {
        let start = #"","sequenceNumber":"#.utf8.count
        guard suffix.count > start else { return nil }
        var number: UInt64 = 0
        for byte in suffix[start...] {
            guard (0x30...0x39).contains(byte) else { break }
            number = number &* 10 &+ UInt64(byte - 0x30)
        }
        return StreamDataEncoding.base(inSuffix: suffix, sequence: number) == nil ? number : nil
    }

    // MARK: Heartbeats

    private static let comment = ":\n\n"

    private func scheduleHeartbeat() {
        guard let interval = limits.connections.pingInterval, !isAnswered else { return }
        hasWritten = false
        heartbeat = shard.reactor.schedule(after: interval, for: self) { $0.beat(interval) }
    }

    /// Writes a comment if nothing else was written, and disconnects a client whose system acknowledges nothing.
    private func beat(_ interval: Duration) {
        guard !isAnswered else { return }
        let now = shard.reactor.now
        if let count = received.acknowledgedBytes {
            if count != acknowledged { (acknowledged, progressAt) = (count, now) }
            // Each interval has at least one write.
            guard now &- progressAt < (interval + interval + limits.connections.pongTimeout).nanoseconds else {
                return disconnect(.pingTimeout)
            }
        }
        if !hasWritten { write(Self.comment) }
        scheduleHeartbeat()
    }
}

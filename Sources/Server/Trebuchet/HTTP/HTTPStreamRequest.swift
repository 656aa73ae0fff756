internal import Bytes
internal import Transports
internal import TrebuchetActors
internal import TrebuchetWire
internal import WebSockets

/// The stream that an HTTP request observes: `GET /observe/ACTOR/STATE`, with the name of the property. A pure value.
struct HTTPStreamRequest {
    /// The start of the paths of streams.
    static let prefix = "/observe/"
    /// The first component of these paths.
    static let component = "observe"
    /// The request field with the identifier of the last event that the client has received.
    static let lastEventField = "Last-Event-ID"
    /// The number of the request on its connection.
    private static let callID = "1"
    /// The maximum length of an epoch.
    private static let maximumEpochBytes = 128

    let actor: String
    /// The name of the stream, such as `observeState`.
    let target: String
    /// The version that the client has received last; nil for a new stream.
    let last: StreamRequest.ResumePosition?
    let traceparent: String?

    /// Reads the head of a request. Throws the refusal of a request that observes no stream.
    init(_ head: HTTPRequestHead) throws(HTTPRejection) {
        guard head.method == "GET" else {
            throw HTTPRejection(405, "a stream requires GET", headers: ["Allow": "GET"])
        }
        let name: String
        (actor, name) = try HTTPCallRequest.target(
            head.path, after: Self.prefix, "the path of a stream is \(Self.prefix)ACTOR/STATE")
        // Methods have parentheses in their names, so a GET never calls one.
        guard !name.contains("(") else {
            throw HTTPRejection(404, "'\(name.prefix(bytes: 128))' is not the name of a state or of events")
        }
        target = "observe" + name.prefix(1).uppercased() + name.dropFirst()
        traceparent = HTTPCallRequest.traceparent(head.headers)
        let identifier = head.headers[Self.lastEventField] ?? ""
        last = identifier.isEmpty ? nil : try Self.position(identifier)
    }

    /// Returns the position of an event by its identifier: the epoch and the number of a version.
    private static func position(_ identifier: String) throws(HTTPRejection) -> StreamRequest.ResumePosition {
        guard let dot = identifier.utf8.lastIndex(of: UInt8(ascii: ".")), isEpoch(identifier[..<dot]),
            let number = UInt64(identifier[identifier.index(after: dot)...])
        else { throw HTTPRejection(400, "\(lastEventField) is not the id of an event of this server") }
        return StreamRequest.ResumePosition(epoch: String(identifier[..<dot]), sequence: number)
    }

    private static func isEpoch(_ text: Substring) -> Bool {
        !text.isEmpty && text.utf8.count <= maximumEpochBytes && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    /// Returns the message that starts or resumes the stream.
    ///
    /// - Parameter isState: True for a state, which is sent as whole values; false for events.
    func message(isState: Bool) -> [UInt8] {
        var buffer = ByteBuffer()
        let filter = isState ? StreamFilter() : nil
        if let last {
            EnvelopeWriter.streamResume(
                streamID: "-", callID: Self.callID, actorID: actor, target: target, epoch: last.epoch,
                lastSequence: last.sequence, filter: filter, into: &buffer)
        } else {
            EnvelopeWriter.invocation(
                callID: Self.callID, actorID: actor, target: target, arguments: nil, filter: filter,
                traceparent: traceparent, into: &buffer)
        }
        return Array(buffer.bytes)
    }
}

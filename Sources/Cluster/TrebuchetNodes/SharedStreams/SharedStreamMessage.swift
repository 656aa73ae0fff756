internal import Bytes
internal import Platform
internal import TrebuchetActors
internal import TrebuchetWire

/// A message on a shared-stream channel, over which a node receives streams once for all of its clients. It is transported in
/// frames like a client's message: one byte with its kind, the stream number in eight bytes, and the payload.
struct SharedStreamMessage {
    /// The kinds of messages. Their raw values are part of the node protocol.
    enum Kind: UInt8 {
        // To the owner.
        /// Begins a stream: `SharedStreamRequest` in JSON.
        case begin = 1
        /// Ends a stream without subscribers; one more byte if a subscriber may return.
        case end

        // From the owner.
        /// The stream has begun: `SharedStreamStart` in JSON.
        case started
        /// A version or an event: its number in eight bytes, and the part of a client message after the stream's name.
        case version
        /// A snapshot of a version that was sent before, in the form of `version`.
        case snapshot
        /// The catch-up is complete.
        case caughtUp
        /// The stream is available elsewhere, or not in shared form: its subscribers must request it again.
        case moved
        /// The stream's actor was deactivated.
        case deactivated
        /// The stream has failed: `SharedStreamFailure` in JSON.
        case failed
    }

    let kind: Kind
    let number: UInt64
    let payload: ArraySlice<UInt8>

    /// The payload that opens a shared-stream channel, in place of a description of a client.
    static let opening = Array(#"{"sharedStreams":1}"#.utf8)

    /// Parses a message; nil if it is invalid.
    init?(_ bytes: [UInt8]) {
        var rest = bytes[...]
        guard let first = rest.popFirst(), let kind = Kind(rawValue: first),
            let number = BinaryFields.number(UInt64.self, &rest)
        else { return nil }
        (self.kind, self.number, payload) = (kind, number, rest)
    }

    static func bytes(_ kind: Kind, _ number: UInt64, _ payload: some Collection<UInt8> = []) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(9 + payload.count)
        bytes.append(kind.rawValue)
        BinaryFields.append(number, to: &bytes)
        bytes += payload
        return bytes
    }

    static func bytes(_ kind: Kind, _ number: UInt64, _ value: some Encodable) -> [UInt8] {
        var buffer = ByteBuffer()
        do {
            try ValueCoder().encode(value, into: &buffer)
        } catch {
            // Strings and integers can always be encoded.
            preconditionFailure("a message between nodes cannot be encoded: \(error)")
        }
        return bytes(kind, number, buffer.bytes)
    }

    static func bytes(_ kind: Kind, _ number: UInt64, version: UInt64, _ suffix: UnsafeRawBufferPointer) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(17 + suffix.count)
        bytes.append(kind.rawValue)
        BinaryFields.append(number, to: &bytes)
        BinaryFields.append(version, to: &bytes)
        bytes += suffix
        return bytes
    }

    func decoded<Value: Decodable>(_ type: Value.Type) -> Value? {
        payload.withUnsafeBytes { try? ValueCoder().decode(type, from: $0) }
    }

    /// Calls `body` with the number of a version and the part of a client message after the stream's name.
    func version<Result>(_ body: (UInt64, UnsafeRawBufferPointer) -> Result) -> Result? {
        var rest = payload
        guard let version = BinaryFields.number(UInt64.self, &rest) else { return nil }
        return rest.withUnsafeBytes { body(version, $0) }
    }
}

/// The position from which a node requests a stream.
struct SharedStreamRequest: Codable {
    var actor: String
    var target: String
    /// The epoch of which the node or its first client has received anything; empty if none.
    var epoch: String
    /// The last received sequence number.
    var sequence: UInt64
    /// True if the requesting node has no versions of the stream.
    var isFresh: Bool
}

/// The start of a shared stream.
struct SharedStreamStart: Codable {
    /// An earlier incarnation of the stream with its last sequence number.
    struct Incarnation: Codable {
        var epoch: String
        var last: UInt64
    }

    var epoch: String
    /// Earlier incarnations that this one continues.
    var earlierIncarnations: [Incarnation]
    var isEvents: Bool
    /// The number of buffered events if none may be dropped.
    var buffer: Int?
    /// The number of the last version or event that is not sent.
    var position: UInt64
    /// True if the stream continues the versions that the receiving node has.
    var continues: Bool
}

/// The error of a failed shared stream.
struct SharedStreamFailure: Codable {
    var code: String
    var message: String
    /// Absent in messages of older nodes.
    var retryAfterMilliseconds: Int?

    init(_ error: TrebuchetError) {
        (code, message) = (error.code.wire.rawValue, error.message)
        retryAfterMilliseconds = error.retryAfter?.milliseconds
    }

    var error: TrebuchetError {
        TrebuchetError(
            .init(ErrorCode(rawValue: code)), message, retryAfter: retryAfterMilliseconds.map { .milliseconds($0) })
    }
}

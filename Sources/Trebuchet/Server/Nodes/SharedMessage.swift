internal import Bytes
internal import TrebuchetActors
internal import TrebuchetWire

/// What goes over a line of a node itself, which carries streams that it takes once for all of its clients. It lies in frames as a
/// client's messages do: one byte that says what it is, the number of the stream in eight, and what belongs to it.
struct SharedMessage {
    enum Kind: UInt8 {
        // To the owner.
        /// A stream is to begin: `SharedBeginning` in JSON.
        case begin = 1
        /// Nobody wants it any more; one byte more when somebody may come back.
        case end

        // And back.
        /// It has begun: `SharedStart` in JSON.
        case started
        /// A version or an event: its number in eight bytes, and what follows the stream's name in a message with it.
        case version
        /// The same with the whole value of a version that was sent before.
        case whole
        /// All has been sent that there was when it began.
        case shown
        /// It goes on elsewhere, or not in this way: who wants it asks again.
        case moved
        /// Its actor is gone.
        case gone
        /// It cannot go on: `SharedFailure` in JSON.
        case failed
    }

    let kind: Kind
    let number: UInt64
    let payload: ArraySlice<UInt8>

    /// What a node opens such a line with, in place of who its client is.
    static let opening = Array(#"{"sharedStreams":1}"#.utf8)

    /// Nil for what no node sends.
    init?(_ bytes: [UInt8]) {
        var rest = bytes[...]
        guard let first = rest.popFirst(), let kind = Kind(rawValue: first),
            let number = ByteParts.number(UInt64.self, &rest)
        else { return nil }
        (self.kind, self.number, payload) = (kind, number, rest)
    }

    static func bytes(_ kind: Kind, _ number: UInt64, _ payload: some Collection<UInt8> = []) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(9 + payload.count)
        bytes.append(kind.rawValue)
        ByteParts.append(number, to: &bytes)
        bytes += payload
        return bytes
    }

    static func bytes(_ kind: Kind, _ number: UInt64, _ value: some Encodable) -> [UInt8] {
        var buffer = ByteBuffer()
        do {
            try ValueCoder().encode(value, into: &buffer)
        } catch {
            // Texts and numbers always have a form.
            preconditionFailure("what nodes tell each other cannot be encoded: \(error)")
        }
        return bytes(kind, number, buffer.bytes)
    }

    static func bytes(_ kind: Kind, _ number: UInt64, version: UInt64, _ suffix: UnsafeRawBufferPointer) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(17 + suffix.count)
        bytes.append(kind.rawValue)
        ByteParts.append(number, to: &bytes)
        ByteParts.append(version, to: &bytes)
        bytes += suffix
        return bytes
    }

    func decoded<Value: Decodable>(_ type: Value.Type) -> Value? {
        payload.withUnsafeBytes { try? ValueCoder().decode(type, from: $0) }
    }

    /// Gives the number of a version, and what follows the stream's name in a message with it.
    func version<Result>(_ body: (UInt64, UnsafeRawBufferPointer) -> Result) -> Result? {
        var rest = payload
        guard let version = ByteParts.number(UInt64.self, &rest) else { return nil }
        return rest.withUnsafeBytes { body(version, $0) }
    }
}

/// From where on a node wants a stream.
struct SharedBeginning: Codable {
    var actor: String
    var target: String
    /// The life in which it, or the first of its clients, has seen something of it; empty when nobody has.
    var epoch: String
    /// What has been seen last.
    var sequence: UInt64
    /// Whether the node has nothing of it itself.
    var isFresh: Bool
}

struct SharedStart: Codable {
    struct Life: Codable {
        var epoch: String
        var last: UInt64
    }

    var epoch: String
    /// Those before, as far as this one goes on from them.
    var lives: [Life]
    var isEvents: Bool
    /// How many are kept where none may be left out.
    var buffer: Int?
    /// Of the last version, or event, that is not sent.
    var position: UInt64
    /// Whether it goes on from what the node has.
    var continues: Bool
}

struct SharedFailure: Codable {
    var code: String
    var message: String

    init(_ error: TrebuchetError) { (code, message) = (error.code.wire.rawValue, error.message) }

    var error: TrebuchetError { TrebuchetError(.init(ErrorCode(rawValue: code)), message) }
}

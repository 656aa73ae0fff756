package import TrebuchetActors
internal import TrebuchetWire

/// The field `Idempotency-Key` of an HTTP call. A call with a key is the repeat of a call over an earlier connection: the first request
/// executes it, later ones get its outcome.
///
/// The session of that connection is derived from the principal and the key, so that it is the same at every node and in every process.
/// It has the instance 0, which no server has. Only HTTP calls use such sessions; other clients could take the names of others.
enum IdempotencyKey {
    static let field = "Idempotency-Key"
    /// The maximum length of a key in bytes.
    static let maximumBytes = 255
    /// The instance of derived sessions.
    static let instance: UInt64 = 0
    /// The start of derived sessions in messages.
    fileprivate static let prefix = Array("0.".utf8)
    /// The number of the call in its session.
    static let callNumber = "1"

    /// Returns whether a key has 1 to `maximumBytes` printable ASCII characters.
    static func isValid(_ key: String) -> Bool {
        let bytes = key.utf8
        return !bytes.isEmpty && bytes.count <= maximumBytes && bytes.allSatisfy { (0x20...0x7E).contains($0) }
    }

    /// Returns the session of a key, as in messages.
    static func session(_ key: String, of principal: String) -> String {
        let digest = Digest.sha256(Array("\(principal.utf8.count):\(principal)\(key)".utf8))
        let (number, secret) = digest.withUnsafeBytes {
            ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        }
        return [instance, number.littleEndian, secret.littleEndian].map { String($0, radix: 36) }.joined(separator: ".")
    }
}

extension Message {
    /// Indicates whether the session of the call is derived from an idempotency key.
    package var hasIdempotencyKey: Bool {
        let session = envelope.pointee.session
        return !session.isAbsent && bytes(session).starts(with: IdempotencyKey.prefix)
    }

    /// Indicates whether the client has sent the call over an earlier connection. A call with an idempotency key may be the first one,
    /// and its client knows that an error of one request does not tell the outcome of another.
    package var wasSentBefore: Bool { kind == .repeat && !hasIdempotencyKey }
}

/// The keys of one direct link: they authenticate both ends and all messages. Derived from the nodes' keys, which the engine
/// distributes, and from nonces of both ends, so recorded traffic cannot be replayed.
struct NodeLinkKeys {
    let nonceOfReceiver: [UInt8]
    private let keys: (sender: [UInt8], receiver: [UInt8])
    private let transcript: [UInt8]

    /// - Parameters:
    ///   - sender: the node that has connected, and sends messages.
    ///   - keys: the keys that both nodes have announced.
    init(
        sender: String, receiver: String, nonces: (sender: [UInt8], receiver: [UInt8]),
        keys: (sender: [UInt8], receiver: [UInt8])
    ) {
        self.keys = keys
        nonceOfReceiver = nonces.receiver
        var transcript: [UInt8] = []
        BinaryFields.append(sender.utf8, to: &transcript)
        BinaryFields.append(receiver.utf8, to: &transcript)
        self.transcript = transcript + nonces.sender + nonces.receiver
    }

    /// Proves that the accepting end has the key of the receiver.
    var proofOfReceiver: [UInt8] { Digest.hmacSHA256(Array("receiver".utf8) + transcript, key: keys.receiver) }
    /// Proves that the connecting end has the key of the sender.
    var proofOfSender: [UInt8] { Digest.hmacSHA256(Array("sender".utf8) + transcript, key: keys.sender) }

    /// The authenticators of both directions.
    var seals: (ofSender: MessageAuthenticator, ofReceiver: MessageAuthenticator) {
        let both = Digest.hmacSHA256(Array("both".utf8) + transcript, key: keys.sender + keys.receiver)
        return (
            MessageAuthenticator(Digest.hmacSHA256(Array("messages".utf8), key: both)),
            MessageAuthenticator(Digest.hmacSHA256(Array("counts".utf8), key: both))
        )
    }
}

extension NodeLinkKeys {
    static func randomBytes(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }
}

/// Authenticates the messages of one direction, including their order.
struct MessageAuthenticator {
    private let key: [UInt8]
    private var count: UInt64 = 0

    init(_ key: [UInt8]) { self.key = key }

    private mutating func next(_ payload: [UInt8]) -> [UInt8] {
        count += 1
        var bytes: [UInt8] = []
        bytes.reserveCapacity(8 + payload.count)
        BinaryFields.append(count, to: &bytes)
        bytes += payload
        return Array(Digest.hmacSHA256(bytes, key: key).prefix(NodeLinkMessage.sealBytes))
    }

    mutating func seal(_ payload: [UInt8]) -> NodeLinkMessage { .sealed(payload, seal: next(payload)) }

    /// Returns the payload of a message; nil if its authentication code or its order is wrong.
    mutating func open(_ message: NodeLinkMessage) -> [UInt8]? {
        guard case .sealed(let payload, let seal) = message, Digest.areEqual(next(payload), seal) else { return nil }
        return payload
    }
}

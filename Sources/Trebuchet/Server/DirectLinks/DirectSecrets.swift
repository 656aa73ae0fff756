/// What the two ends of a direct link prove to each other, and seal their messages with: keys that they have from the engine, and random
/// bytes of each end that are used once, so nothing that was recorded is good a second time.
struct DirectSecrets {
    let nonceOfReceiver: [UInt8]
    private let keys: (sender: [UInt8], receiver: [UInt8])
    private let said: [UInt8]

    /// - Parameters:
    ///   - sender: who has connected, and sends messages.
    ///   - keys: what both have announced.
    init(
        sender: String, receiver: String, nonces: (sender: [UInt8], receiver: [UInt8]),
        keys: (sender: [UInt8], receiver: [UInt8])
    ) {
        self.keys = keys
        nonceOfReceiver = nonces.receiver
        var said: [UInt8] = []
        ByteParts.append(sender.utf8, to: &said)
        ByteParts.append(receiver.utf8, to: &said)
        self.said = said + nonces.sender + nonces.receiver
    }

    /// That whoever is connected to has the key of the receiver.
    var proofOfReceiver: [UInt8] { Digest.hmacSHA256(Array("receiver".utf8) + said, key: keys.receiver) }
    /// That whoever has connected has the key of the sender.
    var proofOfSender: [UInt8] { Digest.hmacSHA256(Array("sender".utf8) + said, key: keys.sender) }

    /// Of the one direction and the other.
    var seals: (ofSender: DirectSeal, ofReceiver: DirectSeal) {
        let both = Digest.hmacSHA256(Array("both".utf8) + said, key: keys.sender + keys.receiver)
        return (
            DirectSeal(Digest.hmacSHA256(Array("messages".utf8), key: both)),
            DirectSeal(Digest.hmacSHA256(Array("counts".utf8), key: both))
        )
    }
}

extension DirectSecrets {
    static func randomBytes(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }
}

/// Seals the messages of one direction, each with its place among them.
struct DirectSeal {
    private let key: [UInt8]
    private var count: UInt64 = 0

    init(_ key: [UInt8]) { self.key = key }

    private mutating func next(_ payload: [UInt8]) -> [UInt8] {
        count += 1
        var bytes: [UInt8] = []
        bytes.reserveCapacity(8 + payload.count)
        ByteParts.append(count, to: &bytes)
        bytes += payload
        return Array(Digest.hmacSHA256(bytes, key: key).prefix(DirectMessage.sealBytes))
    }

    mutating func seal(_ payload: [UInt8]) -> DirectMessage { .sealed(payload, seal: next(payload)) }

    /// What was sealed; nil for what was not by the other end, not in this order, or not so.
    mutating func open(_ message: DirectMessage) -> [UInt8]? {
        guard case .sealed(let payload, let seal) = message, Digest.areEqual(next(payload), seal) else { return nil }
        return payload
    }
}

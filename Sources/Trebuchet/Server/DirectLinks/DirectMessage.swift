/// What goes over a direct link: it has a kind in its first byte.
///
/// The node that has messages for another one connects, and says who it is and whom it means (`hello`). The other proves that it is that
/// one (`challenge`), it does the same (`proof`); then messages go one way, and how many have arrived the other.
enum DirectMessage: Equatable {
    /// The subprotocol of the WebSocket (RFC 6455 §1.9).
    static let subprotocol = "trebuchet.node.v1"
    static let nonceBytes = 32
    /// Of what a `sealed` message has in front.
    static let sealBytes = 16
    static let proofBytes = 32

    case hello(from: String, to: String, nonce: [UInt8])
    case challenge(nonce: [UInt8], proof: [UInt8])
    case proof([UInt8])
    /// Once both are known: what each sends has a seal that nobody else can make.
    case sealed([UInt8], seal: [UInt8])

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        switch self {
        case .hello(let sender, let receiver, let nonce):
            bytes = [1]
            ByteParts.append(sender.utf8, to: &bytes)
            ByteParts.append(receiver.utf8, to: &bytes)
            bytes += nonce
        case .challenge(let nonce, let proof): bytes = [2] + nonce + proof
        case .proof(let proof): bytes = [3] + proof
        case .sealed(let payload, let seal):
            bytes.reserveCapacity(1 + seal.count + payload.count)
            bytes.append(4)
            bytes += seal
            bytes += payload
        }
        return bytes
    }

    /// Nil for what no node sends.
    init?(_ bytes: [UInt8]) {
        var rest = bytes[...]
        switch rest.popFirst() {
        case 1:
            guard let sender = ByteParts.text(&rest), let receiver = ByteParts.text(&rest),
                rest.count == Self.nonceBytes
            else { return nil }
            self = .hello(from: sender, to: receiver, nonce: Array(rest))
        case 2:
            guard rest.count == Self.nonceBytes + Self.proofBytes else { return nil }
            self = .challenge(nonce: Array(rest.prefix(Self.nonceBytes)), proof: Array(rest.suffix(Self.proofBytes)))
        case 3:
            guard rest.count == Self.proofBytes else { return nil }
            self = .proof(Array(rest))
        case 4:
            guard rest.count >= Self.sealBytes else { return nil }
            self = .sealed(Array(rest.dropFirst(Self.sealBytes)), seal: Array(rest.prefix(Self.sealBytes)))
        default: return nil
        }
    }
}

/// Says, from the end that gets messages, how many there were; from the other end, that it wants to know.
struct DirectCount: Equatable {
    /// The number of the last message that was handled, whichever way it came.
    var received: UInt64

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        ByteParts.append(received, to: &bytes)
        return bytes
    }

    init(received: UInt64) { self.received = received }

    init?(_ bytes: [UInt8]) {
        var rest = bytes[...]
        guard let received = ByteParts.number(UInt64.self, &rest), rest.isEmpty else { return nil }
        self.received = received
    }
}

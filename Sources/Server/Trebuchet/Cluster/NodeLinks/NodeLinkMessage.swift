/// A message on a direct link; the first byte is its kind.
///
/// The sending node connects and names itself and the receiver (`hello`). The receiver proves its identity (`challenge`), and
/// the sender proves its own (`proof`). Then messages go from sender to receiver, and acknowledgement counts go back.
enum NodeLinkMessage: Equatable {
    /// The subprotocol of the WebSocket (RFC 6455 §1.9).
    static let subprotocol = "trebuchet.node.v1"
    static let nonceBytes = 32
    /// The size of the authentication code that precedes a `sealed` message.
    static let sealBytes = 16
    static let proofBytes = 32

    case hello(from: String, to: String, nonce: [UInt8])
    case challenge(nonce: [UInt8], proof: [UInt8])
    case proof([UInt8])
    /// A message after the handshake, with an authentication code.
    case sealed([UInt8], seal: [UInt8])

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        switch self {
        case .hello(let sender, let receiver, let nonce):
            bytes = [1]
            BinaryFields.append(sender.utf8, to: &bytes)
            BinaryFields.append(receiver.utf8, to: &bytes)
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

    /// Parses a message; nil if it is invalid.
    init?(_ bytes: [UInt8]) {
        var rest = bytes[...]
        switch rest.popFirst() {
        case 1:
            guard let sender = BinaryFields.text(&rest), let receiver = BinaryFields.text(&rest),
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

/// An acknowledgement from the receiver with the number of handled messages; from the sender, a query for it.
struct NodeLinkAcknowledgement: Equatable {
    /// The number of the last message that was handled, over any path.
    var received: UInt64

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        BinaryFields.append(received, to: &bytes)
        return bytes
    }

    init(received: UInt64) { self.received = received }

    init?(_ bytes: [UInt8]) {
        var rest = bytes[...]
        guard let received = BinaryFields.number(UInt64.self, &rest), rest.isEmpty else { return nil }
        self.received = received
    }
}

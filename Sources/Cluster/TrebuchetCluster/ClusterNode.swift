/// One incarnation of a node. A restarted node is another one, so that messages to the earlier incarnation do not
/// reach it.
public struct ClusterNode: Hashable, Sendable, CustomStringConvertible {
    /// The name: up to 64 ASCII letters, digits, dots, hyphens and underscores.
    public let name: String
    /// The incarnation: 32 hexadecimal digits.
    public let incarnation: String

    /// Creates another incarnation of the node of this name. Throws `invalid` for a name with other characters.
    public init(name: String) throws(ClusterEngineError) {
        guard Self.isName(name) else {
            throw ClusterEngineError(
                .invalid,
                "a node name must have 1 to 64 letters, digits, hyphens and underscores; dots may separate parts of it")
        }
        self.name = name
        var random = SystemRandomNumberGenerator()
        incarnation = [random.next(), random.next()].map { (part: UInt64) in
            let digits = String(part, radix: 16)
            return String(repeating: "0", count: 16 - digits.utf8.count) + digits
        }.joined()
    }

    /// Parses a description; nil if it is invalid.
    public init?(_ description: some StringProtocol) {
        let parts = description.split(separator: "#", omittingEmptySubsequences: false)
        guard parts.count == 2, Self.isName(parts[0]), parts[1].utf8.count == 32,
            parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
        else { return nil }
        name = String(parts[0])
        incarnation = String(parts[1])
    }

    /// The text of the node, such as `east-1#5f0c…`.
    public var description: String { "\(name)#\(incarnation)" }

    private static func isName(_ text: some StringProtocol) -> Bool {
        // An empty part of a name would have another meaning in a certificate.
        (1...64).contains(text.utf8.count) && !".\(text).".contains("..")
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
                default: false
                }
            }
    }
}

/// A live node.
public struct LiveNode: Hashable, Sendable {
    /// The node.
    public let node: ClusterNode
    /// The announced data of the node.
    public let info: [UInt8]
    /// The time until the node expires, if it does not announce itself again.
    public let remaining: Duration

    /// Creates a live node, for custom implementations.
    public init(_ node: ClusterNode, info: [UInt8], remaining: Duration) {
        self.node = node
        self.info = info
        self.remaining = remaining
    }
}

/// An event for subscribers of a node's messages.
public enum InboxEvent: Equatable, Sendable {
    /// A message.
    case message([UInt8])
    /// The coordination store was unreachable: messages may have been lost.
    case messagesMissed
    /// No more events follow.
    case ended(ClusterEngineError)
}

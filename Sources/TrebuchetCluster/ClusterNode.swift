/// One life of a node. A node that starts again is another one, so what was meant for the life before does not reach it.
public struct ClusterNode: Hashable, Sendable, CustomStringConvertible {
    /// Up to 64 letters, digits, dots, hyphens and underscores of ASCII.
    public let name: String
    /// Which life: 32 hexadecimal digits.
    public let incarnation: String

    /// A new life of the node of that name. Throws `invalid` for a name with other letters.
    public init(name: String) throws(ClusterEngineError) {
        guard Self.isName(name) else {
            throw ClusterEngineError(
                .invalid, "a node's name has 1 to 64 letters, digits, dots, hyphens and underscores, and no others")
        }
        self.name = name
        var random = SystemRandomNumberGenerator()
        incarnation = [random.next(), random.next()].map { (part: UInt64) in
            let digits = String(part, radix: 16)
            return String(repeating: "0", count: 16 - digits.utf8.count) + digits
        }.joined()
    }

    /// From its description; nil when that is none.
    public init?(_ description: some StringProtocol) {
        let parts = description.split(separator: "#", omittingEmptySubsequences: false)
        guard parts.count == 2, Self.isName(parts[0]), parts[1].utf8.count == 32,
            parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
        else { return nil }
        name = String(parts[0])
        incarnation = String(parts[1])
    }

    /// `east-1#5f0c…`
    public var description: String { "\(name)#\(incarnation)" }

    private static func isName(_ text: some StringProtocol) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
                default: false
                }
            }
    }
}

/// A node that lives.
public struct LiveNode: Hashable, Sendable {
    /// Which one.
    public let node: ClusterNode
    /// What it says of itself.
    public let info: [UInt8]
    /// How long it lives if it is not heard of again.
    public let remaining: Duration

    /// For an engine of your own.
    public init(_ node: ClusterNode, info: [UInt8], remaining: Duration) {
        self.node = node
        self.info = info
        self.remaining = remaining
    }
}

/// What a node gets that listens.
public enum InboxEvent: Equatable, Sendable {
    /// Somebody has sent it.
    case message([UInt8])
    /// The engine was out of reach: messages may have been lost.
    case mayHaveMissed
    /// Nothing comes any more; the last event.
    case ended(ClusterEngineError)
}

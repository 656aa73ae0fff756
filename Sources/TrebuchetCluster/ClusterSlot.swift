internal import Platform

/// One of the 1,024 parts that all names are spread over. A node owns slots, not names: so leases cost as much as there are slots.
public struct ClusterSlot: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// How many there are; it never changes.
    public static let count = 1_024
    /// All of them, in their order.
    public static let all = (0..<count).map { ClusterSlot(unchecked: $0) }

    /// From 0 to 1,023.
    public let number: Int

    /// Nil when there is no such slot.
    public init?(_ number: Int) {
        guard (0..<Self.count).contains(number) else { return nil }
        self.number = number
    }

    /// The slot of a name, by its bytes; the same in every process and version. Of a name with braces what stands between the first `{`
    /// and the next `}` counts alone, unless that is nothing: names that have that in common are in one slot.
    public init(of name: String) {
        var digest = StableDigest()
        digest.combine(Self.tag(of: name).map { String($0) } ?? name)
        number = Int((digest.value ^ (digest.value >> 32)) % UInt64(Self.count))
    }

    private static func tag(of name: String) -> Substring? {
        let bytes = name.utf8
        guard let open = bytes.firstIndex(of: UInt8(ascii: "{")) else { return nil }
        let start = bytes.index(after: open)
        guard let end = bytes[start...].firstIndex(of: UInt8(ascii: "}")), end > start else { return nil }
        return name[start..<end]
    }

    private init(unchecked number: Int) { self.number = number }

    /// `s17`
    public var description: String { "s\(number)" }

    public static func < (left: Self, right: Self) -> Bool { left.number < right.number }
}

/// That a node owns a slot: what each write carries.
public struct SlotLease: Hashable, Sendable {
    /// What is owned.
    public let slot: ClusterSlot
    /// Who owns it.
    public let owner: ClusterNode
    /// How many owners the slot has had, this one among them: at least 1.
    public let fence: UInt64

    /// For an engine of your own.
    public init(_ slot: ClusterSlot, owner: ClusterNode, fence: UInt64) {
        self.slot = slot
        self.owner = owner
        self.fence = fence
    }
}

/// Who owns a slot.
public struct SlotHolder: Hashable, Sendable {
    /// The lease that it has.
    public let lease: SlotLease
    /// How long the lease lasts if it is not renewed, by the engine's clock.
    public let remaining: Duration

    /// For an engine of your own.
    public init(_ lease: SlotLease, remaining: Duration) {
        self.lease = lease
        self.remaining = remaining
    }
}

/// What came of asking for a slot.
public enum SlotClaim: Hashable, Sendable {
    /// It is owned by who asked.
    case acquired(SlotLease)
    /// Somebody else owns it.
    case held(SlotHolder)
}

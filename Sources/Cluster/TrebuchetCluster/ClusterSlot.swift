internal import Platform

/// One of the 1,024 parts of all names. A node owns slots instead of names, so that the cost of leases depends on the
/// number of slots.
public struct ClusterSlot: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The number of slots. It never changes.
    public static let count = 1_024
    /// All slots, in order.
    public static let all = (0..<count).map { ClusterSlot(unchecked: $0) }

    /// The number, from 0 to 1,023.
    public let number: Int

    /// Creates a slot; nil for an invalid number.
    public init?(_ number: Int) {
        guard (0..<Self.count).contains(number) else { return nil }
        self.number = number
    }

    /// Creates the slot of a name, from its bytes; the same in every process and version. If the name contains braces,
    /// only the text between the first `{` and the next `}` counts, unless it is empty. Names with the same text there
    /// have the same slot.
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

    /// The text of the slot, such as `s17`.
    public var description: String { "s\(number)" }

    public static func < (left: Self, right: Self) -> Bool { left.number < right.number }
}

/// A node's ownership of a slot, which each write carries.
public struct SlotLease: Hashable, Sendable {
    /// The owned slot.
    public let slot: ClusterSlot
    /// The owner.
    public let owner: ClusterNode
    /// The number of owners of the slot so far, including this one: at least 1.
    public let fence: UInt64

    /// Creates a lease, for custom implementations.
    public init(_ slot: ClusterSlot, owner: ClusterNode, fence: UInt64) {
        self.slot = slot
        self.owner = owner
        self.fence = fence
    }
}

/// The owner of a slot.
public struct SlotOwner: Hashable, Sendable {
    /// The lease of the owner.
    public let lease: SlotLease
    /// The time until the lease expires, if it is not renewed, by the clock of the coordination store.
    public let remaining: Duration

    /// Creates an owner, for custom implementations.
    public init(_ lease: SlotLease, remaining: Duration) {
        self.lease = lease
        self.remaining = remaining
    }
}

/// The outcome of acquiring a slot.
public enum SlotAcquisition: Hashable, Sendable {
    /// The requesting node owns the slot.
    case acquired(SlotLease)
    /// Another node owns the slot.
    case ownedByOther(SlotOwner)

    /// The lease of the requesting node; nil if another node owns the slot.
    package var lease: SlotLease? {
        if case .acquired(let lease) = self { lease } else { nil }
    }
}

/// The slots of an array in the order of their last use. Several orders may share the links of an array, when each slot is in one
/// of them. Each call takes constant time. Pure.
struct SlotOrder: Sendable {
    /// The neighbours of a slot.
    struct Link: Sendable {
        fileprivate var older = SlotOrder.none
        fileprivate var newer = SlotOrder.none
    }

    fileprivate static let none = -1

    private(set) var count = 0
    private var oldest = SlotOrder.none
    private var newest = SlotOrder.none

    /// The least recently used slot.
    var first: Int? { oldest == Self.none ? nil : oldest }

    /// Makes a slot the most recently used.
    mutating func markUsed(_ slot: Int, _ links: inout [Link]) {
        guard slot != newest else { return }
        remove(slot, &links)
        count += 1
        links[slot].older = newest
        if newest == Self.none { oldest = slot } else { links[newest].newer = slot }
        newest = slot
    }

    /// Removes a slot, if it is there.
    mutating func remove(_ slot: Int, _ links: inout [Link]) {
        let link = links[slot]
        guard link.older != Self.none || slot == oldest else { return }
        count -= 1
        if link.older == Self.none { oldest = link.newer } else { links[link.older].newer = link.newer }
        if link.newer == Self.none { newest = link.older } else { links[link.newer].older = link.older }
        links[slot] = Link()
    }
}

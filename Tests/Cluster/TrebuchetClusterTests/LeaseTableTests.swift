import Testing

@testable import TrebuchetCluster

/// Times are small numbers here; a lease lasts 30.
struct LeaseTableTests {
    private let node: ClusterNode
    private let other: ClusterNode
    private var book = LeaseTable(span: 30)

    init() throws { (node, other) = (try ClusterNode(name: "a"), try ClusterNode(name: "b")) }

    private func lease(_ slot: Int, _ fence: UInt64 = 1) -> SlotLease {
        SlotLease(ClusterSlot.all[slot], owner: node, fence: fence)
    }

    private func holder(_ slot: Int, fence: UInt64 = 1, for remaining: Duration) -> SlotOwner {
        SlotOwner(SlotLease(ClusterSlot.all[slot], owner: other, fence: fence), remaining: remaining)
    }

    private mutating func take(_ lease: SlotLease, at moment: UInt64) throws {
        let isTaken = try book.acquired(lease, askedAt: moment, now: moment)
        #expect(isTaken)
    }

    @Test("a lease counts from the time before its request, and before each renewal")
    mutating func spans() throws {
        let slot = ClusterSlot.all[0]
        var isTaken = try book.acquired(lease(0), askedAt: 100, now: 120)
        #expect(isTaken)
        #expect(book.lease(of: slot, at: 129) == lease(0) && book.lease(of: slot, at: 130) == nil)
        #expect(book.known(slot) == lease(0))
        #expect(book.due(at: 109) == [] && book.due(at: 110) == [lease(0)])
        var over = book.expire(at: 129)
        #expect(over == [] && book.nextEnd == 130)
        book.renewed(lease(0), askedAt: 110)
        // Responses may arrive in another order.
        book.renewed(lease(0), askedAt: 105)
        #expect(book.lease(of: slot, at: 139) == lease(0))
        over = book.expire(at: 140)
        #expect(over == [lease(0)] && book.isEmpty && book.known(slot) == nil)
        // Too late: the lease has expired.
        book.renewed(lease(0), askedAt: 139)
        #expect(book.lease(of: slot, at: 140) == nil)
        isTaken = try book.acquired(lease(0), askedAt: 100, now: 130)
        #expect(!isTaken && book.isEmpty)
    }

    @Test("slots that others hold are requested in order and not all at once, free ones immediately")
    mutating func claims() throws {
        let planned = Array(ClusterSlot.all.prefix(6))
        #expect(book.claims(planned, atMost: 1, now: 100) == planned)
        for slot in 0..<4 { try book.recordOwner(holder(slot, for: .nanoseconds(10)), at: 100) }
        try take(lease(5), at: 100)
        #expect(book.claims(planned, atMost: 2, now: 109).map(\.number) == [0, 1, 4])
        #expect(book.claims(planned, atMost: 2, now: 110).map(\.number) == [0, 1, 2, 3, 4])
    }

    @Test("a limited number of slots is released at once, in order")
    mutating func giving() throws {
        for slot in [3, 1, 2, 0] { try take(lease(slot), at: 100) }
        let isOthers = { (slot: ClusterSlot) in slot.number > 0 }
        let first = book.beginHandovers(atMost: 2, at: 101, isOthers)
        let none = book.beginHandovers(atMost: 2, at: 102, isOthers)
        #expect(first == [lease(1), lease(2)] && none == [])
        // The slot is owned and renewed until it is released.
        #expect(book.lease(of: ClusterSlot.all[1], at: 105) == lease(1) && book.due(at: 110).count == 4)
        let isGone = [book.dropLease(lease(1)), book.dropLease(lease(1))]
        #expect(isGone == [true, false])
        #expect(book.lease(of: ClusterSlot.all[1], at: 105) == nil)
        let next = book.beginHandovers(atMost: 2, at: 103, isOthers)
        #expect(next == [lease(3)])
        #expect(book.leaving(since: 100) == [] && book.leaving(since: 101) == [lease(2)])
    }

    @Test("a released slot is not requested until the engine has confirmed the release")
    mutating func releases() throws {
        try take(lease(0), at: 100)
        var isGone = book.dropLease(lease(0))
        #expect(isGone && book.claims([ClusterSlot.all[0]], atMost: 1, now: 200) == [])
        book.didRelease(lease(0, 2))
        #expect(book.released.count == 1)
        book.didRelease(lease(0))
        #expect(book.claims([ClusterSlot.all[0]], atMost: 1, now: 200) == [ClusterSlot.all[0]])
        // A slot lost before is not released.
        try take(lease(0, 2), at: 200)
        isGone = book.dropLease(lease(0))
        #expect(!isGone)
        let isLost = book.lose(lease(0, 2))
        isGone = book.dropLease(lease(0, 2))
        #expect(isLost && !isGone)
    }

    @Test(
        "a decreased fence is data loss, whichever node has the slot; a fence seen at another node may be unconfirmed")
    mutating func fences() throws {
        try take(lease(0, 3), at: 100)
        try take(lease(0, 3), at: 100)
        try take(lease(1, 5), at: 100)
        try book.recordOwner(holder(2, fence: 5, for: .seconds(1)), at: 100)
        try book.recordOwner(holder(2, fence: 4, for: .seconds(1)), at: 200)
        try take(lease(2, 4), at: 300)
        var changed = book
        var error = #expect(throws: ClusterEngineError.self) {
            try changed.recordOwner(holder(0, fence: 2, for: .seconds(1)), at: 1)
        }
        #expect(error?.code == .dataLoss)
        error = #expect(throws: ClusterEngineError.self) { _ = try changed.acquired(lease(1, 4), askedAt: 1, now: 1) }
        #expect(error?.code == .dataLoss && error?.message.contains("fence 5 and now has 4") == true)
    }
}

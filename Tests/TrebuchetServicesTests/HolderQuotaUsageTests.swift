import Testing

@testable import TrebuchetServices

@Suite("Quotas of principals and hosts")
struct HolderQuotaUsageTests {
    @Test("a principal has its quota and no more, by the bytes of its id, and is removed when it holds nothing")
    func principals() {
        var shares = HolderQuotaUsage(perPrincipal: 3, perHost: 1)
        let (one, other) = (QuotaHolder(principal: "\u{E9}", host: nil), QuotaHolder(principal: "e\u{301}", host: nil))
        #expect(shares.exceeded(one, by: 3) == nil && shares.exceeded(one, by: 4) == 3)
        shares.reserve(one, 2)
        #expect(shares.exceeded(one) == nil && shares.exceeded(one, by: 2) == 3)
        shares.reserve(one)
        #expect(shares.exceeded(one) == 3)
        #expect(shares.exceeded(other) == nil)
        shares.reserve(other)
        #expect(shares.holderCount == (2, 0))
        shares.release(one, 3)
        shares.release(other)
        #expect(shares.holderCount == (0, 0))
        #expect(shares.exceeded(one, by: 3) == nil)
        // An anonymous caller at this machine has no quota.
        #expect(shares.exceeded(QuotaHolder(principal: nil, host: nil), by: 100) == nil)
    }
}

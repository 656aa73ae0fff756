import Testing
import Trebuchet

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
        #expect(shares.scopeCount == 2)
        shares.release(one, 3)
        shares.release(other)
        #expect(shares.scopeCount == 0)
        #expect(shares.exceeded(one, by: 3) == nil)
        // An anonymous caller at this machine has no quota.
        #expect(shares.exceeded(QuotaHolder(principal: nil, host: nil), by: 100) == nil)
    }

    @Test("a network of hosts has the quota of four hosts, and a host with nothing else is forgotten with it")
    func networks() {
        var shares = HolderQuotaUsage(perPrincipal: .max, perHost: 2)
        func holder(_ number: Int) -> QuotaHolder {
            QuotaHolder(principal: nil, host: CallerHost(address: "2001:db8:1:\(number)::1"))
        }
        for number in 0..<4 {
            #expect(shares.exceeded(holder(number), by: 2) == nil)
            shares.reserve(holder(number), 2)
            #expect(shares.exceeded(holder(number)) == 2)
        }
        #expect(shares.exceeded(holder(5)) == 8)
        let other = QuotaHolder(principal: nil, host: CallerHost(address: "2001:db8:2::1"))
        #expect(shares.exceeded(other, by: 2) == nil)
        for number in 0..<4 { shares.release(holder(number), 2) }
        #expect(shares.scopeCount == 0 && shares.exceeded(holder(5), by: 2) == nil)
    }
}

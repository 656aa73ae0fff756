import Testing
import Trebuchet

@testable import TrebuchetServices

@Suite struct QuerySharesTests {
    @Test(
        "a principal has no more of a server's queries than its share, by the bytes of its name, and gets its places back"
    )
    func shares() throws {
        var limits = CollectionLimits()
        limits.queries = 5
        limits.queriesPerPrincipal = 2
        var shares = QueryShares(limits)
        let ada = Holder(principal: "ad\u{e9}", host: nil)
        let other = Holder(principal: "ade\u{301}", host: nil)
        try shares.take(ada, isNew: true)
        try shares.take(ada, isNew: true)
        #expect(throws: CollectionError.tooManyQueries(limit: 2)) { try shares.take(ada, isNew: true) }
        #expect(shares.count == 2)
        try shares.take(other, isNew: true)
        for _ in 0..<2 { try shares.take(Holder(principal: nil, host: nil), isNew: true) }
        #expect(throws: CollectionError.tooManyQueries(limit: 5)) { try shares.take(other, isNew: true) }
        // A query that is there already is no further one of the server's.
        try shares.take(other, isNew: false)
        #expect(throws: CollectionError.tooManyQueries(limit: 2)) { try shares.take(other, isNew: false) }
        shares.release(ada)
        shares.remove()
        try shares.take(ada, isNew: true)
        #expect(shares.count == 5)
    }

    @Test("a query is in a principal's share once, however many connections of it read it")
    func stakes() {
        var stakes = QueryShares.Stakes()
        let ada = Holder(principal: "ada", host: nil)
        #expect(stakes.missing(ada) == ada)
        stakes.add(ada)
        #expect(stakes.missing(ada) == Holder(principal: nil, host: nil))
        stakes.add(ada)
        #expect(stakes.remove(ada) == Holder(principal: nil, host: nil))
        #expect(stakes.remove(ada) == ada)
    }

    @Test("by default nobody has more than a sixteenth")
    func defaults() {
        let limits = CollectionLimits()
        #expect(limits.queriesPerPrincipal * 16 <= limits.queries && limits.queriesPerHost * 16 <= limits.queries)
    }
}

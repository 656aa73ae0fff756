import Testing
import Trebuchet

@testable import TrebuchetServices

@Suite struct QueryQuotasTests {
    /// A use in a collection with other queries.
    private static let none = QueryQuotas.Use(holder: QuotaHolder(principal: nil, host: nil), isFirst: false)

    @Test("a principal may have as many collections in use as are still free, or a sixteenth")
    func quota() throws {
        var limits = CollectionLimits()
        limits.collections = 160
        var shares = QueryQuotas(limits)
        func take(_ name: String) -> Bool {
            let holder = QuotaHolder(principal: name, host: nil)
            do {
                try shares.reserve(holder, isNew: true, of: QueryQuotas.Use(holder: holder, isFirst: true))
                return true
            } catch { return false }
        }
        var counts: [Int] = []
        for name in ["ada", "bob", "cid", "dan", "eve", "fay"] {
            counts.append(0)
            while take(name) { counts[counts.count - 1] += 1 }
        }
        #expect(counts == [80, 40, 20, 10, 10, 10])
        let holder = QuotaHolder(principal: "ada", host: nil)
        for _ in 0..<80 { shares.release(holder, QueryQuotas.Use(holder: holder, isFirst: true)) }
        #expect(take("fay"))
    }

    @Test("a principal has a quota of a server's queries, by the bytes of its name, and released ones are free again")
    func shares() throws {
        var limits = CollectionLimits()
        limits.queries = 5
        limits.queriesPerPrincipal = 2
        var shares = QueryQuotas(limits)
        let ada = QuotaHolder(principal: "ad\u{e9}", host: nil)
        let other = QuotaHolder(principal: "ade\u{301}", host: nil)
        try shares.reserve(ada, isNew: true, of: Self.none)
        try shares.reserve(ada, isNew: true, of: Self.none)
        #expect(throws: CollectionError.tooManyQueries(limit: 2)) {
            try shares.reserve(ada, isNew: true, of: Self.none)
        }
        #expect(shares.count == 2)
        try shares.reserve(other, isNew: true, of: Self.none)
        for _ in 0..<2 { try shares.reserve(QuotaHolder(principal: nil, host: nil), isNew: true, of: Self.none) }
        #expect(throws: CollectionError.tooManyQueries(limit: 5)) {
            try shares.reserve(other, isNew: true, of: Self.none)
        }
        // An existing query does not count again for the server.
        try shares.reserve(other, isNew: false, of: Self.none)
        #expect(throws: CollectionError.tooManyQueries(limit: 2)) {
            try shares.reserve(other, isNew: false, of: Self.none)
        }
        shares.release(ada, Self.none)
        shares.remove()
        try shares.reserve(ada, isNew: true, of: Self.none)
        #expect(shares.count == 5)
    }

    @Test("a query counts once for a principal, however many of its connections read it")
    func reservations() {
        var reservations = QueryQuotas.Reservations()
        let ada = QuotaHolder(principal: "ada", host: nil)
        #expect(reservations.missing(ada) == ada)
        reservations.insert(ada)
        #expect(reservations.missing(ada) == QuotaHolder(principal: nil, host: nil))
        reservations.insert(ada)
        #expect(reservations.remove(ada) == QuotaHolder(principal: nil, host: nil))
        #expect(reservations.remove(ada) == ada)
    }

    @Test("by default a principal has at most a sixteenth")
    func defaults() {
        let limits = CollectionLimits()
        #expect(limits.queriesPerPrincipal * 16 <= limits.queries && limits.queriesPerHost * 16 <= limits.queries)
    }
}

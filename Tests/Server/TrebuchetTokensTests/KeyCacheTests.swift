import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetTokens

@Suite struct KeyCacheTests {
    /// An event at a time in milliseconds.
    enum Event: Sendable {
        /// Keys with these ids, for a lifetime of ten minutes; nil is a key without an id.
        case fetched([String?], Int64)
        case failed(Int64)
    }

    private static func cache(after events: [Event]) throws -> KeyCache {
        let key = try #require(try KeySet.keys(in: Array(#"{"keys":[\#(TestSigningKey("").json)]}"#.utf8)).first).key
        var cache = KeyCache(staleTime: .seconds(24 * 60 * 60))
        for event in events {
            switch event {
            case .fetched(let ids, let now):
                _ = cache.fetched(ids.map { PublishedKey(id: $0, key: key) }, lifetime: 600_000, at: now)
            case .failed(let now): _ = cache.failed(at: now)
            }
        }
        return cache
    }

    private static func text(_ step: KeyCache.Step) -> String {
        switch step {
        case .verify(let keys, let isRefreshDue):
            "verify " + keys.map { $0.id ?? "-" }.joined(separator: ",") + (isRefreshDue ? ", refresh" : "")
        case .fetch: "fetch"
        case .unknownKey: "unknown"
        case .wrongSignature: "wrong"
        case .unavailable(let pause): "wait \(pause)"
        }
    }

    @Test(
        "the age of the keys and the last fetch determine the step of a token",
        arguments: [
            // Without keys: one fetch, then one every 10 s.
            ([], "a", 0, "fetch"),
            ([.failed(0)], "a", 9_999, "wait 1"), ([.failed(0)], "a", 10_000, "fetch"),
            // Cached keys, with a refresh in the last quarter of their lifetime.
            ([.fetched(["a", "b"], 0)], "a", 0, "verify a"), ([.fetched(["a", "b"], 0)], "b", 449_999, "verify b"),
            ([.fetched(["a"], 0)], "a", 450_000, "verify a, refresh"),
            ([.fetched(["a"], 0)], "a", 599_999, "verify a, refresh"), ([.fetched(["a"], 0)], "a", 600_000, "fetch"),
            ([.fetched(["a"], 0), .failed(450_000)], "a", 459_999, "verify a"),
            ([.fetched(["a"], 0), .failed(450_000)], "a", 460_000, "verify a, refresh"),
            ([.fetched(["a"], 0), .fetched(["b"], 450_000)], "b", 600_000, "verify b"),
            // An unknown key: one fetch in 30 s after any other.
            ([.fetched(["a"], 0)], "x", 29_999, "unknown"), ([.fetched(["a"], 0)], "x", 30_000, "fetch"),
            ([.fetched(["a"], 0), .fetched(["a"], 30_000)], "x", 59_999, "unknown"),
            ([.fetched(["a"], 0), .failed(30_000)], "x", 30_001, "wait 29999"),
            ([.fetched(["a"], 0), .failed(30_000)], "x", 60_000, "fetch"),
            ([.fetched(["a"], 0), .fetched(["b"], 30_000)], "a", 30_001, "unknown"),
            // Expired keys: after a failed fetch they are used, with further fetches in the background for a minute.
            ([.fetched(["a"], 0), .failed(450_000)], "a", 600_000, "fetch"),
            ([.fetched(["a"], 0), .failed(599_999)], "a", 600_000, "verify a"),
            ([.fetched(["a"], 0), .failed(600_000)], "a", 600_001, "verify a"),
            ([.fetched(["a"], 0), .failed(600_000)], "a", 610_000, "verify a, refresh"),
            ([.fetched(["a"], 0), .failed(600_000)], "a", 659_999, "verify a, refresh"),
            ([.fetched(["a"], 0), .failed(600_000)], "a", 660_000, "fetch"),
            ([.fetched(["a"], 0), .failed(600_000)], "x", 600_001, "wait 29999"),
            ([.fetched(["a"], 0), .failed(86_999_999)], "a", 86_999_999, "verify a"),
            ([.fetched(["a"], 0), .failed(86_999_999)], "a", 87_000_000, "wait 9999"),
            ([.fetched(["a"], 0), .failed(86_990_000)], "a", 87_000_000, "fetch"),
            // Keys without an id may have signed any token; a token without an id may be signed by any key.
            ([.fetched(["a", nil], 0)], "x", 0, "verify -"), ([.fetched(["a", nil], 0)], "a", 0, "verify a"),
            ([.fetched(["a", "b"], 0)], nil, 0, "verify a,b"),
            ([.fetched(["a", "b", "c", "d", "e"], 0)], nil, 0, "verify a,b,c,d"),
            ([.fetched([nil, nil, nil, nil, nil], 0)], "x", 0, "verify -,-,-,-"),
            ([.fetched(["a", "a", "a", "a", "a"], 0)], "a", 0, "verify a,a,a,a"),
            // Ids are compared by bytes.
            ([.fetched(["\u{e9}"], 0)], "e\u{301}", 0, "unknown"),
        ] as [([Event], String?, Int64, String)])
    func step(events: [Event], id: String?, now: Int64, step: String) throws {
        #expect(Self.text(try Self.cache(after: events).step(id, .es256, at: now)) == step)
    }

    @Test("keys of another algorithm do not verify a token")
    func algorithm() throws {
        let cache = try Self.cache(after: [.fetched(["a", nil], 0)])
        for algorithm in [JSONWebTokenAlgorithm.rs256, .edDSA] {
            #expect(Self.text(cache.step("a", algorithm, at: 0)) == "unknown")
            #expect(Self.text(cache.step(nil, algorithm, at: 0)) == "unknown")
        }
    }

    @Test(
        "a signature that no candidate has made is wrong if the token names a key, else the key may be unknown",
        arguments: [
            ([.fetched(["a", nil], 0)], "a", 60_000, "wrong"), ([.fetched(["a", nil], 0)], "x", 60_000, "fetch"),
            ([.fetched(["a", nil], 0)], "x", 29_999, "unknown"), ([.fetched(["a"], 0)], nil, 30_000, "fetch"),
            ([.fetched(["a"], 0)], nil, 29_999, "unknown"),
            ([.fetched(["a"], 0), .failed(60_000)], nil, 60_000, "wait 30000"),
        ] as [([Event], String?, Int64, String)])
    func mismatch(events: [Event], id: String?, now: Int64, step: String) throws {
        #expect(Self.text(try Self.cache(after: events).stepAfterMismatch(id, at: now)) == step)
    }

    @Test("an outage begins with the first failed fetch and ends with the next successful one")
    func outage() throws {
        var cache = try Self.cache(after: [])
        let starts = [cache.failed(at: 0), cache.failed(at: 1)]
        #expect(starts == [true, false])
        #expect(cache.remainingTime(at: 1) == 0)
        let ends = [
            cache.fetched([], lifetime: 60_000, at: 2), cache.fetched([], lifetime: 60_000, at: 3),
        ]
        #expect(ends == [true, false])
        let isStart = cache.failed(at: 4)
        #expect(isStart)
    }

    @Test("keys that cannot be fetched are used for the time of the option after their expiry")
    func remainingTime() throws {
        let cache = try Self.cache(after: [.fetched(["a"], 0)])
        #expect(cache.remainingTime(at: 600_000) == 86_400_000)
        #expect(cache.remainingTime(at: 86_999_999) == 1)
        #expect(cache.remainingTime(at: 88_000_000) == 0)
    }

    @Test(
        "keys are used after their expiry for the time of the option, at most 30 days",
        arguments: [0, 5, .max] as [Int64])
    func staleTime(seconds: Int64) throws {
        let key = try #require(try KeySet.keys(in: Array(#"{"keys":[\#(TestSigningKey("a").json)]}"#.utf8)).first)
        var cache = KeyCache(staleTime: .seconds(seconds))
        _ = cache.fetched([key], lifetime: 60_000, at: 0)
        let end = 60_000 + min(seconds, 30 * 24 * 60 * 60) * 1_000
        _ = cache.failed(at: end - 1)
        #expect(Self.text(cache.step("a", .es256, at: end - 1)) == "verify a")
        #expect(Self.text(cache.step("a", .es256, at: end)) == "wait 9999")
    }

    @Test(
        "the issuer determines how long keys are cached, within bounds",
        arguments: [
            ([], 3_600), (["public", "max-age=7200"], 7_200), (["max-age=\"7200\""], 7_200), (["Max-Age=1"], 60),
            (["max-age=0"], 60), (["max-age=60"], 60), (["max-age=61"], 61), (["max-age=86401"], 86_400),
            (["max-age=999999999"], 86_400), (["max-age=99999999999999999999"], 60), (["max-age=x"], 60),
            (["max-age=-5"], 60), (["no-store", "max-age=7200"], 60), (["no-cache"], 60), (["max-age"], 3_600),
        ] as [([String], Int64)])
    func lifetime(_ directives: [String], seconds: Int64) {
        #expect(KeyCache.lifetime(directives) == seconds * 1_000)
    }
}

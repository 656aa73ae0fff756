import Testing
import TrebuchetActors

@testable import Trebuchet

@Suite struct AuthorizationCacheTests {
    @Test("a grant applies to one actor and target, compared by bytes, under the rules that granted it")
    func grants() {
        let grants = AuthorizationCache()
        func has(_ actor: String, _ target: String, _ rules: UInt64 = 0, of principal: UInt64 = 0) -> Bool {
            grants.contains(ActorName(actor), target, on: .init(rules: rules, principal: principal))
        }
        let (before, after) = (AuthorizationCache.Basis(), AuthorizationCache.Basis(rules: 1))
        #expect(!has("room", "enter()"))
        grants.storeGrant(ActorName("room"), "enter()", on: before)
        grants.storeGrant(ActorName("caf\u{E9}"), "enter()", on: before)
        #expect(has("room", "enter()") && has("caf\u{E9}", "enter()"))
        #expect(!has("room", "leave()") && !has("rooms", "enter()") && !has("", "roomenter()"))
        #expect(!has("cafe\u{301}", "enter()"), "another actor, whose name is equal as text")
        #expect(!has("room", "enter()", 1), "the rules have changed")
        grants.storeGrant(ActorName("room"), "enter()", on: before)
        #expect(!has("room", "enter()", 1), "a grant by earlier rules")
        grants.storeGrant(ActorName("room"), "enter()", on: after)
        #expect(has("room", "enter()", 1))
        #expect(!has("room", "enter()", 1, of: 1), "another principal has signed in")
    }

    @Test("a connection caches the newest grants and no long names")
    func limits() {
        let grants = AuthorizationCache()
        func has(_ target: String) -> Bool { grants.contains(ActorName("a"), target, on: .init()) }
        for number in 0..<AuthorizationCache.most { grants.storeGrant(ActorName("a"), "\(number)", on: .init()) }
        #expect((0..<AuthorizationCache.most).allSatisfy { has("\($0)") })
        grants.storeGrant(ActorName("a"), "next", on: .init())
        #expect(!has("0") && has("1") && has("next"))
        let long = String(repeating: "x", count: AuthorizationCache.longest)
        grants.storeGrant(ActorName("a"), long, on: .init())
        grants.storeGrant(ActorName(long), "b", on: .init())
        #expect(!has(long) && has("1"))
        grants.storeGrant(ActorName("a"), String(long.dropLast()), on: .init())
        #expect(has(String(long.dropLast())) && !has("1"))
    }
}

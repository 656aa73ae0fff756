import Platform
import Bytes
import Testing

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// Principals whose ids are canonically equal but have different bytes: equal as Swift strings, distinct accounts in a directory.
@Suite struct PrincipalNameTests {
    private static let ids = ["Ren\u{e9}", "Rene\u{301}"]

    @Test("a recorded response belongs to the principal of its call")
    func answers() {
        var most = ServerLimits()
        (most.idempotency.perConnection, most.idempotency.bytesPerConnection) = (9, 9_999)
        let limits = IdempotencyCache<String>.Limits(client: most.ofClient, server: most.ofServer, time: 100)
        let quotas = QuotaLedger(limits: ServerLimits())
        var memory = IdempotencyCache<String>(limits, quotas)
        let name = IdempotencyCache<String>.Name(connection: CallSessionID(number: 1, secret: 1), number: 1)
        func begin(_ id: String, again: Bool) -> IdempotencyCache<String>.Outcome? {
            memory.recordCall(name, .init(digest: 1, principal: id, isRepeat: again), "a", at: 0)
        }
        #expect(begin(Self.ids[0], again: false) == nil)
        _ = memory.recordResponse(name, .success([1]), at: 0)
        guard case .refused(let error) = begin(Self.ids[1], again: true) else {
            Issue.record("another principal's response was returned")
            return
        }
        #expect(error.code == .unknownOutcome)
        guard case .answered = begin(Self.ids[0], again: true) else {
            Issue.record("its own response was missing")
            return
        }
        let other = quotas.account(for: QuotaScopes(connection: nil, principal: Self.ids[1], host: nil))
        #expect(quotas.scopeCount == 2)
        withExtendedLifetime(other) {}
    }

    @Test("each principal has its own quotas, memory and clients")
    func shares() {
        let parties = Self.ids.map { QuotaScopes(connection: 1, principal: $0, host: nil) }
        #expect(parties[0].all != parties[1].all)
        #expect(parties[0].all == parties[0].all)
        let quotas = QuotaLedger(limits: ServerLimits())
        let rows = Self.ids.map { quotas.row(of: .principal(PrincipalName($0))) }
        rows[0].memory?.adjustUsage(by: 60)
        #expect(rows[1].memory?.usedBytes == 0)
        #expect(quotas.row(of: .principal(PrincipalName(Self.ids[0]))).memory?.usedBytes == 60)
        let clients = ServerContext(reactors: 1, limits: ServerLimits(), log: nil).hosting
        let keys = Self.ids.map { clients.key(of: "identity", principal: PrincipalName($0)) }
        #expect(keys[0] != keys[1])
        #expect(keys[0] == clients.key(of: "identity", principal: PrincipalName(Self.ids[0])))
    }

    @Test("principals are compared by the bytes of their ids")
    func signedIn() {
        #expect(Principal(id: Self.ids[0]) != Principal(id: Self.ids[1]))
        #expect(Set(Self.ids.map { Principal(id: $0, roles: ["a"]) }).count == 2)
        #expect(Principal(id: Self.ids[0], roles: ["a"]) != Principal(id: Self.ids[0]))
        #expect(Principal(id: "a", claims: ["b": "c"]) != Principal(id: "a"))
        #expect(Principal(id: "a", claims: ["b": "c"]) == Principal(id: "a", claims: ["b": "c"]))
    }
}

import Testing

@testable import Trebuchet
@testable import TrebuchetActors

@Suite(.timeLimit(.minutes(5))) struct ConnectionAuthorizationTests {
    private func withAuthorization(
        isServer: Bool = false, _ change: (inout ServerLimits) -> Void = { _ in },
        _ body: @escaping @Sendable (ConnectionAuthorization, CallerConnection, ServerShard) -> Void
    ) async {
        let rig = await ServerConnectionTests.Rig(change)
        await rig.on { connection in
            let shard = connection.shard
            let caller = CallerConnection(principal: Principal(id: "ada"), remoteAddress: nil)
            body(ConnectionAuthorization(of: caller, isServer: isServer, at: shard), caller, shard)
        }
    }

    private static func call(_ shard: ServerShard) -> InFlightCall {
        InFlightCall(callID: [1], after: .seconds(1), on: shard.reactor, byteCount: 0)
    }

    @Test("the caller is one object while the principal stays the same")
    func caller() async {
        await withAuthorization { authorization, connection, _ in
            let first = authorization.caller
            #expect(Caller.areIdentical(first, authorization.caller) && first?.principal?.id == "ada")
            connection.principal = Principal(id: "bob")
            #expect(!Caller.areIdentical(first, authorization.caller))
            #expect(authorization.caller?.principal?.id == "bob")
        }
    }

    @Test("a call that has waited is refused when its principal has left, unless the server made it")
    func replacedPrincipal() async {
        for isServer in [false, true] {
            await withAuthorization(isServer: isServer) { authorization, connection, shard in
                let call = Self.call(shard)
                call.caller = authorization.caller
                #expect(authorization.refusalAfterWait(of: "f()", "a", call) == nil)
                connection.principal = nil
                let refusal = authorization.refusalAfterWait(of: "f()", "a", call)
                #expect(refusal?.code == (isServer ? nil : .unauthenticated))
            }
        }
    }

    @Test("after a revocation only the exempt actor may be used")
    func revocation() async {
        await withAuthorization { authorization, connection, shard in
            connection.revokeAccess("out", except: "sign-in")
            #expect(authorization.refusal(of: "f()", "a", for: nil, continuing: nil) == nil, "not applied yet")
            authorization.isRevoked = true
            #expect(authorization.refusal(of: "f()", "a", for: nil, continuing: nil)?.message == "out")
            #expect(authorization.refusal(of: "f()", "sign-in", for: nil, continuing: nil) == nil)
        }
    }

    @Test("an exceeded rate is refused under the name of its setting")
    func rates() async {
        await withAuthorization { limits in
            limits.calls.rate.perConnection = RateLimit(callsPerSecond: 0.001, burst: 2)
        } _: { authorization, _, _ in
            let refusals = (1...3).map { _ in authorization.rateRefusal(of: "f()", "a") }
            #expect(refusals[0] == nil && refusals[1] == nil)
            #expect(refusals[2]?.error.code == .rateLimited && refusals[2]?.setting.hasPrefix("calls.rate") == true)
        }
    }
}

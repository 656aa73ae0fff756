import Testing

@testable import Trebuchet
@testable import TrebuchetActors

@Suite(.timeLimit(.minutes(5))) struct IdempotentCallsTests {
    @Test("a connection keeps the quota of its persisted responses while its principal stays the same")
    func quota() async {
        let rig = await ServerConnectionTests.Rig()
        await rig.on { connection in
            func quota(_ principal: String?) -> PersistedResponseQuota {
                let request = ServerIdempotencyCache.Memory.Request(digest: 1, principal: principal, isRepeat: false)
                return connection.idempotentCalls.persistedResponseQuota(of: connection.name, request)
            }
            let first = quota("ada")
            #expect(quota("ada") === first)
            let second = quota("bob")
            #expect(second !== first)
            #expect(quota("bob") === second)
            #expect(quota(nil) !== second)
            connection.linkDidClose()
        }
    }
}

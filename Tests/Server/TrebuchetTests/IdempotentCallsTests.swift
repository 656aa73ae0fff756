import Networking
import Platform
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

    @Test("a stopping server answers no repeat that waits for the end of its first connection: the call may have run")
    func waitingRepeatAtShutdown() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2)
        let (shard, other) = (server.shards[0], server.shards[1])
        await server.expose(Calculator(actorSystem: server.actorSystem), as: "calculator")
        let first = other.newConnectionName()
        let held = ThreadSemaphore()
        other.reactor.execute { held.wait() }
        let (texts, waiting) = await shard.reactor.perform {
            let link = ServerConnectionTests.Link()
            let connection = ServerConnection(link, name: shard.newConnectionName(), shard: shard)
            let session = shard.idempotencyCache.names.text(first)
            let text =
                #"{"type":"repeat","payload":{"callID":"1","session":"\#(session)","actorID":"calculator","#
                + #""targetIdentifier":"same(_:)","arguments":[5]}}"#
            Array(text.utf8).withUnsafeBytes { connection.receive($0) }
            let waiting = connection.running.count
            connection.endWaitingCalls()
            let texts = link.texts
            connection.linkDidClose()
            return (texts, waiting)
        }
        held.signal()
        #expect(waiting == 1)
        #expect(texts.isEmpty, "\(texts)")
    }
}

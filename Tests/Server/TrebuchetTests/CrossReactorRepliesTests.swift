import Testing

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// Responses of calls that ended on another reactor than that of their connection.
@Suite(.timeLimit(.minutes(5))) struct CrossReactorRepliesTests {
    @Test(
        "responses arrive from a reactor whose server is freed, before the call ends or in the same turn",
        arguments: [true, false])
    func freedServer(before: Bool) async {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2)
        let (here, there) = (server.shards[0], server.shards[1])
        if before { await there.reactor.perform { there.releaseReferences() } }
        let isHere = await withCheckedContinuation { continuation in
            there.reactor.execute {
                here.deliver(from: there.states) { continuation.resume(returning: here.reactor.isCurrent) }
                if !before { there.releaseReferences() }
            }
        }
        #expect(isHere)
        await server.shutdown(drain: .zero)
    }
}

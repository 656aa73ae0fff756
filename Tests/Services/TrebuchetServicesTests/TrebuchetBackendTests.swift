import Testing
import Trebuchet
import TrebuchetServices

@Suite struct TrebuchetBackendTests {
    @Test("keys use the backend of their scope, and otherwise that of the process")
    func scope() async {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        let first = TrebuchetBackend(client: TrebuchetClient(transport: .local(server)))
        let second = TrebuchetBackend(client: TrebuchetClient(transport: .local(server)))
        first.withCurrent {
            #expect(TrebuchetBackend.current === first)
            second.withCurrent { #expect(TrebuchetBackend.current === second) }
        }
        await second.withCurrent {
            await Task.yield()
            #expect(TrebuchetBackend.current === second)
        }
    }
}

import DocumentedDefaults
import Testing
import WebSockets

@Suite("Defaults of settings")
struct DefaultsTests {
    @Test("are those that the comments say")
    func documented() throws {
        let webSocketLimits = try DocumentedDefaults(of: WebSocketLimits(), in: "WebSockets/WebSocketLimits.swift")
        #expect(webSocketLimits.wrong == [])
        #expect(webSocketLimits.compared.count >= 18)
        let webSocketCompression = try DocumentedDefaults(
            of: WebSocketCompression(), in: "WebSockets/Compression/WebSocketCompression.swift")
        #expect(webSocketCompression.wrong == [])
        #expect(webSocketCompression.compared.count >= 4)
    }
}

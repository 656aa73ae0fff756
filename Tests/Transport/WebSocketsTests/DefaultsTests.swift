import DocumentedDefaults
import Testing
import WebSockets

@Suite("Defaults of settings")
struct DefaultsTests {
    @Test("the defaults equal those in the comments")
    func documented() throws {
        let webSocketLimits = try DocumentedDefaults(
            of: WebSocketLimits(), in: "Transport/WebSockets/Frames/WebSocketLimits.swift")
        #expect(webSocketLimits.wrong == [])
        #expect(webSocketLimits.compared.count >= 18)
        let pageLimits = try DocumentedDefaults(of: PageLimits(), in: "Transport/WebSockets/Frames/PageLimits.swift")
        #expect(pageLimits.wrong == [])
        #expect(pageLimits.compared.count == 6)
        let webSocketCompression = try DocumentedDefaults(
            of: WebSocketCompression(), in: "Transport/WebSockets/Compression/WebSocketCompression.swift")
        #expect(webSocketCompression.wrong == [])
        #expect(webSocketCompression.compared.count >= 4)
    }

    @Test("the page of limits lists every setting of WebSocketLimits with its default")
    func page() throws {
        let table = try DocumentedTable(
            of: WebSocketLimits(), in: "Reference/Limits.md",
            special: [
                "bufferedBytes": "1/4 of the memory", "bufferedBytesPerHost": "1/4 of `bufferedBytes`",
                "pages": "see `PageLimits`",
            ])
        #expect(table.problems == [])
        #expect(table.count > 20)
    }
}

import DocumentedDefaults
import Testing
import Trebuchet

@Suite("Defaults of settings")
struct DefaultsTests {
    @Test("the defaults equal those in the comments")
    func documented() throws {
        let serverLimits = try DocumentedDefaults(of: ServerLimits(), in: "Server/Trebuchet/Limits/ServerLimits.swift")
        #expect(serverLimits.wrong == [])
        #expect(serverLimits.compared.count >= 40)
        let reconnectPolicy = try DocumentedDefaults(
            of: ReconnectPolicy(), in: "Client/TrebuchetClient/ReconnectPolicy.swift")
        #expect(reconnectPolicy.wrong == [])
        #expect(reconnectPolicy.compared.count >= 3)
        let options = try DocumentedDefaults(
            of: TrebuchetClient.Options(), in: "Client/TrebuchetClient/TrebuchetClient.swift")
        #expect(options.wrong == [])
        #expect(options.compared.count >= 6)
    }
}

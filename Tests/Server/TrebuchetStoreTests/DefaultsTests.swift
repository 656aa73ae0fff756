import DocumentedDefaults
import Testing
import TrebuchetStore

@Suite("Defaults of settings")
struct DefaultsTests {
    @Test("defaults match their comments")
    func documented() throws {
        let options = try DocumentedDefaults(of: SQLiteStore.Options(), in: "Server/TrebuchetStore/SQLiteStore.swift")
        #expect(options.wrong == [])
        #expect(options.compared.count >= 3)
    }
}

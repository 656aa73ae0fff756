import Testing

@testable import Trebuchet

@Suite struct StreamMemoryTests {
    @Test("a source goes on for 30 seconds after the last loss, and not without one")
    func duration() {
        let memory = StreamMemory()
        #expect(!memory.isKept)
        memory.keep(at: 1_000_000_000)
        #expect(memory.isKept(at: 30_999_999_999))
        #expect(!memory.isKept(at: 31_000_000_000))
        memory.keep(at: 20_000_000_000)
        #expect(memory.isKept(at: 49_999_999_999))
    }
}

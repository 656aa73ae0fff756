import Testing

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Suite struct ResumeRetentionTests {
    @Test("a source is retained for a time after the last disconnection, and not without one")
    func duration() {
        let memory = ResumeRetention()
        #expect(!memory.isRetained(on: nil))
        memory.extend(for: .seconds(30), at: 1_000_000_000)
        #expect(memory.isRetained(at: 30_999_999_999))
        #expect(!memory.isRetained(at: 31_000_000_000))
        memory.extend(for: .seconds(30), at: 20_000_000_000)
        memory.extend(for: .seconds(2), at: 20_000_000_001)
        #expect(memory.isRetained(at: 49_999_999_999))
    }
}

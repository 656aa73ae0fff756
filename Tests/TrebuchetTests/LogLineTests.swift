import Testing

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Suite struct LogLineTests {
    @Test("a line of the log ends, also when one character of it has scalars without end")
    func bounded() {
        let text = "e" + String(repeating: "\u{301}", count: 100_000)
        #expect(text.count == 1)
        #expect(LogLine.of(text).unicodeScalars.count == LogLine.longest + 1)
        #expect(LogLine.of("a\nb") == "a\\nb")
    }
}

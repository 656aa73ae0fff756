import Testing

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Suite struct LogLineTests {
    @Test("a log line is truncated, also within one character of endless scalars")
    func bounded() {
        let text = "e" + String(repeating: "\u{301}", count: 100_000)
        #expect(text.count == 1)
        #expect(LogLine.of(text).unicodeScalars.count == LogLine.longest + 1)
        #expect(LogLine.of("a\nb") == "a\\nb")
    }

    @Test("different names produce different lines, and no name can imitate another one")
    func names() {
        let names = ["counters/\u{7}", #"counters/\u{07}"#, #"counters/\\u{07}"#, "counters/\\\u{7}"]
        #expect(Set(names.map { LogLine.ofName($0) }).count == names.count)
        #expect(LogLine.ofName("a/ä_1") == "a/ä_1")
    }

    @Test("JSON has the same content without terminal control sequences")
    func json() {
        let text = "{\"a\u{9B}2J\u{202E}\":\t[\"\u{E0001}é✓\"]}\n"
        #expect(LogLine.ofJSON(text) == "{\"a\\u009b2J\\u202e\":\t[\"\\udb40\\udc01é✓\"]}\n")
    }
}

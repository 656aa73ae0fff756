import Platform
import Testing

@Suite struct CountTextTests {
    @Test("one is in the singular, every other number in the plural")
    func counts() {
        #expect([0, 1, 2].map { $0.counted("node") } == ["0 nodes", "1 node", "2 nodes"])
        #expect([1, 2].map { $0.counted("entry", "entries") } == ["1 entry", "2 entries"])
    }
}

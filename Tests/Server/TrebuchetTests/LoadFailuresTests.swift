import Synchronization
import Testing
import TrebuchetActors

@testable import Trebuchet

/// Log lines about actors that cannot be loaded.
@Suite struct LoadFailuresTests {
    private struct StoreUnreachable: Error {}

    private final class Fixture: Sendable {
        let lines = Mutex<[String]>([])
        let now = Mutex<UInt64>(1)

        func advance(_ seconds: UInt64) { now.withLock { $0 += seconds * 1_000_000_000 } }

        func failures() -> LoadFailures {
            LoadFailures(log: { level, line in self.lines.withLock { $0.append("\(level) \(line)") } }) {
                self.now.withLock { $0 }
            }
        }
    }

    private func fail(_ failures: LoadFailures, _ name: String, _ error: any Error = StoreUnreachable()) async {
        await #expect(throws: (any Error).self) { try await failures.recordingFailure(of: name) { throw error } }
    }

    @Test("a lasting failure is logged once, as an error with its reason, and its end too")
    func persistentFailure() async throws {
        let fixture = Fixture()
        let failures = fixture.failures()
        await fail(failures, "todos")
        fixture.advance(9)
        await fail(failures, "todos")
        #expect(fixture.lines.withLock { $0 }.isEmpty)
        for _ in 0..<3 {
            fixture.advance(1)
            await fail(failures, "todos", TrebuchetError(.unavailable, "the disk is gone"))
        }
        let lines = fixture.lines.withLock { $0 }
        #expect(lines.count == 1)
        #expect(lines.first?.hasPrefix("error actor 'todos' could not be loaded for 10 s") == true)
        #expect(lines.first?.contains("the disk is gone") == true)
        #expect(failures.count == 1)
        #expect(try await failures.recordingFailure(of: "todos") { 1 } == 1)
        #expect(fixture.lines.withLock { $0.last } == "notice actor 'todos' was loaded after failures")
        #expect(failures.count == 0)
    }

    @Test("an actor that moved to another node is not a load failure")
    func moved() async {
        let failures = Fixture().failures()
        await fail(failures, "todos", ActorMoved.error)
        #expect(failures.count == 0)
    }

    @Test("ended failures do not use up the log lines of later ones, and an old failure does not count as lasting")
    func later() async {
        let fixture = Fixture()
        let failures = fixture.failures()
        for _ in 0...1 {
            for number in 0..<LoadFailures.maximumLines { await fail(failures, "lists/\(number)") }
            fixture.advance(10)
        }
        #expect(fixture.lines.withLock { $0 }.count == LoadFailures.maximumLines)
        fixture.advance(3_600)
        await fail(failures, "lists/0")
        #expect(fixture.lines.withLock { $0 }.count == LoadFailures.maximumLines)
        await fail(failures, "todos")
        fixture.advance(10)
        await fail(failures, "todos")
        #expect(
            fixture.lines.withLock { $0.last }?.hasPrefix("error actor 'todos' could not be loaded for 10 s") == true)
    }

    @Test("failures of unused actors are removed, and their number is bounded")
    func bounded() async {
        let fixture = Fixture()
        let failures = fixture.failures()
        for number in 0..<LoadFailures.most + 10 { await fail(failures, "lists/\(number)") }
        #expect(failures.count == LoadFailures.most)
        fixture.advance(10)
        for number in 0..<LoadFailures.most { await fail(failures, "lists/\(number)") }
        #expect(fixture.lines.withLock { $0 }.count == LoadFailures.maximumLines)
        fixture.advance(60)
        #expect(failures.count == 0)
    }
}

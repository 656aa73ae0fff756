import NodeSupport
import Foundation
import Synchronization
import Testing

/// Random sequences of events from seeds. `TREBUCHET_SEED=17` runs one seed, `TREBUCHET_LONG_TESTS=1` two hundred; without these none
/// runs, as a sequence takes some seconds.
@Suite(.timeLimit(.minutes(15)), .serialized) struct ScheduleTests {
    static var seeds: [UInt64] {
        let environment = ProcessInfo.processInfo.environment
        if let seed = environment["TREBUCHET_SEED"].flatMap(UInt64.init) { return [seed] }
        return environment["TREBUCHET_LONG_TESTS"] == "1" ? Array(1...200) : []
    }

    @Test(
        "no acknowledged call is lost, no @Idempotent call is executed twice, and no version goes back, despite all faults",
        arguments: seeds)
    func randomSchedule(seed: UInt64) async throws {
        let schedule = Schedule(seed: seed)
        let findings = try await schedule.run()
        #expect(findings.isEmpty, "seed \(seed)")
        #expect(schedule.faults.withLock { !$0.isEmpty })
    }
}

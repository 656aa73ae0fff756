import Foundation
import NodeSupport
import Testing

/// Random courses of events from seeds, without servers. `TREBUCHET_SEED=17` runs one seed.
@Suite(.timeLimit(.minutes(5))) struct AlarmModelTests {
    static var seeds: [UInt64] {
        ProcessInfo.processInfo.environment["TREBUCHET_SEED"].flatMap(UInt64.init).map { [$0] } ?? Array(1...100)
    }

    @Test("no alarm is lost, early, or delivered twice, wherever a node is killed", arguments: seeds)
    func courses(seed: UInt64) async throws {
        let model = AlarmModel(seed: seed)
        try await model.run()
        #expect(model.findings.isEmpty, "seed \(seed)")
        #expect(model.events.count > 5)
    }
}

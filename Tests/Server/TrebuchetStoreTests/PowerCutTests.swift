import PowerCuts
import TestSupport
import Testing
import TrebuchetStore

/// Some of the seeds of `scripts/stress power-cuts`, which runs hundreds.
@Suite(.serialized, .timeLimit(.minutes(5))) struct PowerCutTests {
    @Test(
        "after a power cut every batch is whole and in order, and acknowledged writes survive as the store promises",
        arguments: SQLiteStore.Durability.allCases)
    func cuts(durability: SQLiteStore.Durability) async throws {
        var sum = Outcome()
        for seed in 9...16 as ClosedRange<UInt64> {
            let outcome = try await Trial(seed: seed, durability).run()
            #expect(outcome.findings == [], "seed \(seed), cut when \(outcome.cut)")
            sum.add(outcome)
        }
        // The cuts happen at points where writes can be lost.
        #expect(sum.acknowledged > 50 && sum.batches.reduce(0, +) > 50, "\(sum)")
        #expect(sum.whole > 20 && sum.torn > 20 && sum.dropped > 20, "\(sum)")
        #expect(sum.cutsWhileMoving > 0, "some cuts must hit a checkpoint")
    }

    @Test(
        "a disk that lies about syncing loses acknowledged writes, and so does SQLite without syncs",
        arguments: [Honesty.lying, .unsynced])
    func broken(honesty: Honesty) async throws {
        var (losses, harmless) = (0, 0)
        for seed in 1...12 as ClosedRange<UInt64> {
            let findings = try await Trial(seed: seed, .powerLoss, honesty).run().findings
            let isLost = findings.contains { if case .lost = $0 { true } else { false } }
            losses += isLost ? 1 : 0
            harmless += findings.isEmpty ? 1 : 0
        }
        #expect(losses > 0 && harmless < 6, "\(losses) of 12 lost something, \(harmless) nothing")
    }

    @Test("the program reports option errors, its findings and how to reproduce them")
    func program() async throws {
        let program = ServeProcess.built("PowerCut")
        for arguments in [["--seeds", "2"], ["--disk", "round"], ["--seed"], ["--nothing"]] {
            let outcome = try await ChildProcess(program, arguments, error: .captured).finish()
            #expect(outcome.status == 2 && outcome.error.contains(arguments[0]), "\(outcome.error)")
        }
        let good = try await ChildProcess(program, ["--seed", "3"]).finish()
        #expect(good.status == 0 && good.output.contains("nothing found"), "\(good.output)")
    }
}

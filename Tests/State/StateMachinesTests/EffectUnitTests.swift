import TestSupport
import Testing

@testable import StateMachines

@MainActor
@Suite("Parts of an effect", .timeLimit(.minutes(5)))
struct EffectUnitTests {
    /// An effect that leaves a detached task, which runs a part.
    private func leaving(_ log: Recorder, after gate: Latch) -> StoreOf<Reduce<Int, Int>> {
        Store(initialState: 0) {
            Reduce { _, _ in
                .run { _ in
                    Task {
                        log.record("left")
                        await gate.wait()
                        await withTaskCancellation(id: "part") {
                            log.record("begun")
                            await untilCancelled()
                            log.record("ended")
                        }
                    }
                }
            }
        }
    }

    @Test("a part in a detached task of an effect ends with the store")
    func leftBehind() async {
        let (log, gate) = (Recorder(), Latch())
        var store: StoreOf<Reduce<Int, Int>>? = leaving(log, after: gate)
        store?.send(0)
        gate.open()
        #expect(await eventually { log.entries == ["left", "begun"] }, "it runs")
        store = nil
        #expect(await eventually { log.entries == ["left", "begun", "ended"] }, "the part has ended")
    }

    @Test("a part that starts after the store's release is cancelled from its start")
    func begunAfterTheEnd() async {
        let (log, gate) = (Recorder(), Latch())
        var store: StoreOf<Reduce<Int, Int>>? = leaving(log, after: gate)
        let task = store?.send(0)
        await task?.finish()
        #expect(await eventually { log.entries == ["left"] }, "the detached task has started")
        store = nil
        gate.open()
        #expect(await eventually { log.entries == ["left", "begun", "ended"] }, "the part has ended")
    }

    @Test("a part that cancels its own id at once is cancelled")
    func cancelsItself() async {
        for round in 0..<500 {
            let id = "own \(round)"
            let isCancelled = await Task.detached {
                await withTaskCancellation(id: id) {
                    Task<Never, Never>.cancel(id: id)
                    return Task.isCancelled
                }
            }.value
            #expect(isCancelled)
            guard isCancelled else { return }
        }
    }

    @Test("when two parts replace each other concurrently, one of them ends the other")
    func replaceEachOther() async {
        for round in 0..<300 {
            let (begun, ended) = (Recorder(), Recorder())
            let tasks = (0..<2).map { number in
                Task.detached {
                    await withTaskCancellation(id: "round \(round)", cancelInFlight: true) {
                        begun.record("\(number)")
                        await untilCancelled()
                        ended.record("\(number)")
                    }
                }
            }
            #expect(await eventually { begun.entries.count == 2 }, "both parts have started")
            #expect(await eventually { !ended.entries.isEmpty }, "one part has ended")
            #expect(ended.entries.count == 1)
            for task in tasks { task.cancel() }
            for task in tasks { await task.value }
        }
    }
}

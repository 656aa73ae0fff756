import TestSupport
import Testing

@testable import StateMachines

@MainActor
@Suite("A part of an effect", .timeLimit(.minutes(5)))
struct EffectUnitTests {
    /// An effect that leaves a task behind, which runs a part.
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

    @Test("that runs in a task which the effect has left behind ends with the store")
    func leftBehind() async {
        let (log, gate) = (Recorder(), Latch())
        var store: StoreOf<Reduce<Int, Int>>? = leaving(log, after: gate)
        store?.send(0)
        gate.open()
        #expect(await eventually { log.entries == ["left", "begun"] }, "it runs")
        store = nil
        #expect(await eventually { log.entries == ["left", "begun", "ended"] }, "it has ended")
    }

    @Test("that begins when the store has gone is cancelled from the beginning")
    func begunAfterTheEnd() async {
        let (log, gate) = (Recorder(), Latch())
        var store: StoreOf<Reduce<Int, Int>>? = leaving(log, after: gate)
        let task = store?.send(0)
        await task?.finish()
        #expect(await eventually { log.entries == ["left"] }, "it was left")
        store = nil
        gate.open()
        #expect(await eventually { log.entries == ["left", "begun", "ended"] }, "it has ended")
    }

    @Test("that cancels its own id at once is cancelled")
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

    @Test("ends the other, of two that replace each other at the same time")
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
            #expect(await eventually { begun.entries.count == 2 }, "both have begun")
            #expect(await eventually { !ended.entries.isEmpty }, "one has ended")
            #expect(ended.entries.count == 1)
            for task in tasks { task.cancel() }
            for task in tasks { await task.value }
        }
    }
}

import Synchronization
import Testing

@testable import Transports

/// The timers of a loop on a Dispatch queue.
@Suite(.timeLimit(.minutes(5))) struct DispatchLoopTests {
    /// Records of timers; used on the loop alone.
    private final class TimerRecords: @unchecked Sendable {
        var numbers: [Int] = []
        var done: CheckedContinuation<Void, Never>?
        var timers: [LoopTimer] = []
    }

    private struct Weak {
        weak var timer: LoopTimer?
    }

    @Test("cancelled timers are released long before they are due")
    func cancelled() async {
        let loop = DispatchLoop(name: "timers")
        let retainedCount = await loop.perform {
            let timers = (0..<10_000).map { number in
                let timer = loop.schedule(after: .seconds(3_600 + number % 7)) {}
                timer.cancel()
                return Weak(timer: timer)
            }
            return timers.count { $0.timer != nil }
        }
        #expect(retainedCount <= 64)
    }

    @Test("timers fire in the order of their deadlines, whatever the order of creation; cancelled ones do not fire")
    func order() async {
        let loop = DispatchLoop(name: "timers")
        let notes = TimerRecords()
        await withCheckedContinuation { continuation in
            loop.execute {
                notes.done = continuation
                for number in [30, 5, 20, 1, 10, 15, 40] {
                    notes.timers.append(
                        loop.schedule(after: .milliseconds(number)) {
                            notes.numbers.append(number)
                            // The last one, created by another.
                            guard number == 40 else { return }
                            _ = loop.schedule(after: .zero) {
                                notes.numbers.append(41)
                                notes.done?.resume()
                            }
                        })
                }
                notes.timers[2].cancel()
                // The next one to fire, too.
                notes.timers[3].cancel()
            }
        }
        #expect(await loop.perform { notes.numbers } == [5, 10, 15, 30, 40, 41])
    }

    @Test("work that a timer schedules for the end of its turn runs before the next timer")
    func turns() async {
        final class Task: EndOfTurnTask {
            let work: () -> Void
            init(_ work: @escaping () -> Void) { self.work = work }
            func endOfTurn() { work() }
        }
        let loop = DispatchLoop(name: "timers")
        let notes = TimerRecords()
        await withCheckedContinuation { continuation in
            loop.execute {
                for number in 0..<3 {
                    _ = loop.schedule(after: .milliseconds(1 + number)) {
                        notes.numbers.append(number)
                        loop.atEndOfTurn(
                            Task {
                                notes.numbers.append(10 + number)
                                if number == 2 { continuation.resume() }
                            })
                    }
                }
            }
        }
        #expect(await loop.perform { notes.numbers } == [0, 10, 1, 11, 2, 12])
    }
}

import Observation
import Platform
import StateMachines
import Synchronization

/// Measures a state machine: an action that changes nothing, and the cancellation of many effects at once.
enum MachineLoad {
    static func run(sends: Int, effects: Int) async -> BenchReport {
        var report = BenchReport()
        report.add("sends", sends)
        let (plain, machine, observed) = await storeSends(sends)
        report.add("store_reducer_send_ns", plain)
        report.add("store_machine_send_ns", machine)
        report.add("store_observed_send_ns", observed)
        report.add("host_send_ns", await hostSends(sends))
        report.add("effects", effects)
        let (started, cancelled) = await effectsInFlight(effects)
        report.add("start_ms", started)
        report.add("cancel_ms", cancelled)
        return report
    }

    /// Returns the nanoseconds per send through a store: of a closure, of a machine, and of an observed machine.
    @MainActor
    private static func storeSends(_ count: Int) -> (plain: Double, machine: Double, observed: Double) {
        let plain = Store(initialState: Still.State()) {
            Reduce<Still.State, StateMachineEvent<Still.Input, Never>> { _, _ in .none }
        }
        let machine = Store(initialState: Still.State()) { Still() }
        let observed = Store(initialState: Still.State()) { Still() }
        withObservationTracking {
            _ = observed.number
        } onChange: {
        }
        return (
            nanoseconds(count) { plain.send(.input(.nothing)) }, nanoseconds(count) { machine.send(.input(.nothing)) },
            nanoseconds(count) { observed.send(.input(.nothing)) }
        )
    }

    @MainActor
    private static func nanoseconds(_ count: Int, _ work: () -> Void) -> Double {
        for _ in 0..<1000 { work() }
        let start = MonotonicClock.now
        for _ in 0..<count { work() }
        return Double(MonotonicClock.now - start) / Double(count)
    }

    private static func hostSends(_ count: Int) async -> Double {
        let host = ReducerHost(initialState: Still.State()) { Still() }
        let start = MonotonicClock.now
        for _ in 0..<count { await host.send(.input(.nothing)) }
        return Double(MonotonicClock.now - start) / Double(count)
    }

    /// Returns the milliseconds until `count` effects run, and until all have ended after the release of their host.
    private static func effectsInFlight(_ count: Int) async -> (started: Double, cancelled: Double) {
        let tally = Tally()
        var host: ReducerHostOf<Waiting>? = ReducerHost(initialState: 0) { Waiting(tally: tally) }
        let start = MonotonicClock.now
        for number in 0..<count { await host?.send(.wait(number)) }
        while tally.begun.load(ordering: .relaxed) < count { await Task.yield() }
        let release = MonotonicClock.now
        host = nil
        while tally.ended.load(ordering: .relaxed) < count { await Task.yield() }
        let end = MonotonicClock.now
        return (Double(release - start) / 1e6, Double(end - release) / 1e6)
    }

    /// A machine that ignores its input.
    private struct Still: StateMachine {
        /// A state with two fields.
        struct State: ObservableState {
            var number = 0
            var text = "text"
        }
        /// The input without effect.
        enum Input { case nothing }
        typealias IOEffect = Never
        typealias IOResult = Never

        static func reduceInput(_ state: State, _ input: Input) -> Transition { identity }
    }

    /// Counts started and ended effects.
    private final class Tally: Sendable {
        let begun = Atomic(0)
        let ended = Atomic(0)
    }

    /// A reducer whose effects wait until they are cancelled.
    private struct Waiting: Reducer {
        typealias State = Int
        /// The action that starts a waiting effect.
        enum Action { case wait(Int) }
        let tally: Tally

        func reduce(into state: inout Int, action: Action) -> Effect<Action> {
            guard case .wait(let number) = action else { return .none }
            return .run { [tally] _ in
                tally.begun.add(1, ordering: .relaxed)
                try? await Task.sleep(for: .seconds(3600))
                tally.ended.add(1, ordering: .relaxed)
            }
            .cancellable(id: number)
        }
    }
}

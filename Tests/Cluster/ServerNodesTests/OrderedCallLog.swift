import Trebuchet

/// Records calls in the order of their execution: lost and repeated calls are visible.
@Trebuchet
distributed actor OrderedCallLog {
    @StreamedState(delivery: .every(), persisted: true) var calls: [Int] = []

    /// Returns the position of the call, counted from 1.
    @Idempotent distributed func sign(_ call: Int) -> Int {
        calls.append(call)
        return calls.count
    }
    distributed func read() -> [Int] { calls }
}

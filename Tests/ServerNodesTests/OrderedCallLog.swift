import Trebuchet

/// Notes who has called, in the order in which they did: what is lost, or done twice, shows.
@Trebuchet
distributed actor OrderedCallLog {
    @StreamedState(delivery: .every(), persisted: true) var calls: [Int] = []

    /// As which it was noted, counted from 1.
    @Idempotent distributed func sign(_ call: Int) -> Int {
        calls.append(call)
        return calls.count
    }
    distributed func read() -> [Int] { calls }
}

import Synchronization
import Benchmarks

/// What honest clients found, and how long their calls took.
final class ControlClientRecord: Sendable {
    private struct Contents {
        var problems: [String] = []
        var times = Histogram()
    }

    let name: String
    private let contents = Mutex(Contents())

    init(name: String) { self.name = name }

    func problem(_ text: String) { contents.withLock { $0.problems.append("\(name): \(text)") } }

    func took(_ duration: Duration) {
        contents.withLock { $0.times.add(UInt64(max(0, duration / .nanoseconds(1)))) }
    }

    var problems: [String] { contents.withLock { $0.problems } }

    var times: Histogram { contents.withLock { $0.times } }
}

/// A client that does what it should, and checks what it gets.
protocol ControlClient: Sendable {
    var ledger: ControlClientRecord { get }
    /// Comes to rest: nothing is asked until `resume`. False when it does not in half a minute.
    func pause() async -> Bool
    func resume()
    func stop() async
}

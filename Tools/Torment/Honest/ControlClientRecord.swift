import Synchronization
import Benchmarks

/// The findings of honest clients, and the durations of their calls.
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

/// A correct client that checks its results.
protocol ControlClient: Sendable {
    var ledger: ControlClientRecord { get }
    /// Stops calling until `resume`. Returns false if it does not come to rest in half a minute.
    func pause() async -> Bool
    func resume()
    func stop() async
}

import Synchronization

/// Records from the output of the sentinels when they replaced a primary.
///
/// A busy machine can make sentinels replace a primary that no fault of the seed stopped.
final class SentinelLog: Sendable {
    struct Failover {
        let time: ContinuousClock.Instant
        let primary: String
    }

    private struct State {
        var primary: String
        var failovers: [Failover] = []
    }

    private static let events = [
        "+sdown master", "+odown", "+try-failover", "-failover-abort", "+switch-master", "+convert-to-slave",
    ]
    private let state: Mutex<State>
    private let start = ContinuousClock.now
    private let isVerbose: Bool

    /// - Parameter primary: The address of the first primary.
    init(primary: String, isVerbose: Bool) {
        state = Mutex(State(primary: primary))
        self.isVerbose = isVerbose
    }

    /// Reads a line that a sentinel printed. Each failover is recorded once, when the first sentinel reports it.
    func read(_ line: String, of sentinel: String) {
        let now = ContinuousClock.now
        guard let event = Self.events.first(where: line.contains) else { return }
        if isVerbose { print("    \(now - start), \(sentinel): \(line)") }
        // +switch-master NAME OLD PORT NEW PORT
        let words = line.split(separator: " ").map(String.init)
        guard event == "+switch-master", let index = words.firstIndex(of: event), words.count >= index + 6 else {
            return
        }
        let (old, new) = (words[index + 2], words[index + 4])
        state.withLock { state in
            guard state.primary == old, new != old else { return }
            state.primary = new
            state.failovers.append(Failover(time: now, primary: new))
        }
    }

    var failovers: [Failover] { state.withLock { $0.failovers } }
}

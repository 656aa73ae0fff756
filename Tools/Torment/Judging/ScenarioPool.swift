import Glibc
import Platform
import Synchronization

/// The threads that run the scenarios of hostile clients.
final class ScenarioPool: Sendable {
    struct Ports: Sendable {
        var plain: Int
        var others: [Scenario.PortKind: Int] = [:]

        func port(for line: Scenario.PortKind) -> Int { others[line] ?? plain }
    }

    /// The outcome of a pool's run.
    struct Outcome: Sendable {
        var scenarios: [Scenario] = []
        var complaint: (scenario: Scenario, text: String)?
        var openSockets: [HostileSocket] = []
    }

    private let ports: Ports
    private let patience: Duration
    private let state = Mutex(Outcome())

    /// The maximum of connections that stay open; beyond it the oldest are closed.
    private static let maximumOpenSockets = 300
    static let threads = 48

    init(_ ports: Ports, patience: Duration) {
        self.ports = ports
        self.patience = patience
    }

    /// Runs the scenarios of `next` until there are no more, or until one has a complaint. Calls of `next` are serialized.
    func run(_ next: @escaping @Sendable () -> Scenario?) async -> Outcome {
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<Self.threads {
                group.addTask { await onThread { self.work(next) } }
            }
        }
        return state.withLock { outcome in
            defer { outcome = Outcome() }
            return outcome
        }
    }

    private func work(_ next: @Sendable () -> Scenario?) {
        // The hostile clients must not take the processor from the server and the honest clients, which are judged. On Linux this applies
        // to a thread, and 0 is the calling one.
        setpriority(__priority_which_t(0), 0, 10)
        while true {
            let scenario: Scenario? = state.withLock { outcome in
                guard outcome.complaint == nil, let scenario = next() else { return nil }
                outcome.scenarios.append(scenario)
                return scenario
            }
            guard let scenario else { return }
            let (complaint, openSocket) = ScenarioRunner(
                scenario, port: ports.port(for: scenario.line), patience: patience
            )
            .run()
            let surplus: HostileSocket? = state.withLock { outcome in
                if let complaint, outcome.complaint == nil { outcome.complaint = (scenario, complaint.text) }
                if let openSocket { outcome.openSockets.append(openSocket) }
                return outcome.openSockets.count > Self.maximumOpenSockets ? outcome.openSockets.removeFirst() : nil
            }
            surplus?.close()
        }
    }
}

import Commands
import Trebuchet

/// Says on standard error when the connection of a command is gone and when it is back, each once.
struct ConnectionReporter {
    private var isGone = false

    /// Follows a client that is connected, until the task is cancelled.
    static func follow(_ client: TrebuchetClient, of command: String) -> Task<Void, Never> {
        let states = client.connectionState
        return Task {
            var reporter = ConnectionReporter()
            for await state in states.stream {
                if let text = reporter.report(state) { Console.error("trebuchet \(command): \(text)") }
            }
        }
    }

    /// What is to be said; nil when that was said before.
    mutating func report(_ state: TrebuchetClient.ConnectionState) -> String? {
        switch state {
        case .connected:
            defer { isGone = false }
            return isGone ? "the connection is back" : nil
        case .connecting(_, let error), .disconnected(let error):
            defer { isGone = true }
            guard !isGone else { return nil }
            return "the connection is gone\(error.map { ": \(LogLine.of($0.message))" } ?? ""); trying again"
        case .draining, .closed: return nil
        }
    }
}

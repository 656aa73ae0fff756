import Commands
import Trebuchet

/// Reports on standard error when the connection of a command is lost and when it is restored, each once.
struct ConnectionReporter {
    private var hasEnded = false

    /// Observes a connected client until the task is cancelled.
    static func follow(_ client: TrebuchetClient, of command: String) -> Task<Void, Never> {
        let states = client.connectionState
        return Task {
            var reporter = ConnectionReporter()
            for await state in states.stream {
                if let text = reporter.report(state) { Console.error("trebuchet \(command): \(text)") }
            }
        }
    }

    /// Returns the message for a state; nil if it was reported before.
    mutating func report(_ state: TrebuchetClient.ConnectionState) -> String? {
        switch state {
        case .connected:
            defer { hasEnded = false }
            return hasEnded ? "reconnected" : nil
        case .connecting(_, let error), .disconnected(let error):
            defer { hasEnded = true }
            guard !hasEnded else { return nil }
            return "connection lost\(error.map { ": \(LogLine.of($0.message))" } ?? ""); reconnecting"
        case .draining, .closed: return nil
        }
    }
}

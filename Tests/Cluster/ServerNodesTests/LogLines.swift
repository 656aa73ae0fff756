import Synchronization
import TestSupport

/// The lines of a log.
final class LogLines: Sendable {
    private let lines = Mutex<[String]>([])

    func append(_ line: String) { lines.withLock { $0.append(line) } }

    /// Waits for a line that contains all of the texts.
    func contains(_ texts: String...) async -> Bool {
        await eventually { lines.withLock { $0.contains { line in texts.allSatisfy { line.contains($0) } } } }
    }
}

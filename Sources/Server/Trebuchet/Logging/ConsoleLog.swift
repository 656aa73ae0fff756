internal import Platform
public import TrebuchetActors

/// Writes lines without time and level, for developers: `trebuchet: listening on 127.0.0.1:8080`. The default log of a server;
/// `ServerLog` is for operators.
public final class ConsoleLog: ServerEventHandler {
    /// The kinds of events that have lines.
    public let kinds: ServerEvent.Kinds = [.server, .summaries]
    private let write: @Sendable (String) -> Void

    /// Creates a log that writes to standard error. It does not block: a separate thread writes, as for a `ServerLog`. A program that
    /// ends regularly waits up to one second for the last lines.
    ///
    /// - Parameter prefix: The beginning of each line.
    public convenience init(prefix: String = "trebuchet: ") {
        self.init { StandardStream.error.write(soon: prefix + $0) }
    }

    /// Creates a log that passes its lines to a closure.
    ///
    /// - Parameter write: Called on any thread, often on that of a reactor: it must not block.
    public init(write: @escaping @Sendable (String) -> Void) { self.write = write }

    /// Receives an event from the server that the log was added to.
    public func handle(_ event: ServerEvent) {
        switch event {
        case .logMessage(_, let line), .summary(let line): write(line)
        default: break
        }
    }
}

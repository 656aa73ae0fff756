internal import Synchronization

/// A queue of log lines with a thread that writes them, so that no request path waits for the reader.
///
/// At most 1 MiB is queued. Further lines are dropped, and a line with their number follows when there is room again.
package final class LogQueue: Sendable {
    private static let maximumBytes = 1 << 20

    /// The queued lines and the waiting flushes.
    private struct State {
        var lines: [String] = []
        var bytes = 0
        var lost = 0
        var isWriting = false
        var waiting: [ThreadSemaphore] = []
    }

    private let state = Mutex(State())
    private let write: @Sendable (String) -> Void

    /// - Parameter write: writes a line. Called for one line after another, on a thread that may block.
    package init(_ write: @escaping @Sendable (String) -> Void) { self.write = write }

    /// Queues a line, or writes it immediately.
    ///
    /// - Parameter writeNow: writes the line if that needs no wait, and returns false otherwise. Called only when no other line is
    ///   queued.
    package func append(_ line: String, writingWith writeNow: (String) -> Bool = { _ in false }) {
        let mustStart = state.withLock { state in
            if !state.isWriting, writeNow(line) { return false }
            guard state.bytes + line.utf8.count <= Self.maximumBytes else {
                state.lost += 1
                return false
            }
            state.lines.append(line)
            state.bytes += line.utf8.count
            defer { state.isWriting = true }
            return !state.isWriting
        }
        // This queue has its own thread, because a write may block forever.
        if mustStart { startThread(named: "log") { self.writeAll() } }
    }

    private func writeAll() {
        while true {
            let (lines, lost, done) = state.withLock { state -> ([String], Int, [ThreadSemaphore]) in
                defer { (state.lines, state.lost) = ([], 0) }
                guard state.lines.isEmpty, state.lost == 0 else { return (state.lines, state.lost, []) }
                state.isWriting = false
                defer { state.waiting = [] }
                return ([], 0, state.waiting)
            }
            guard !lines.isEmpty || lost > 0 else {
                for waiting in done { waiting.signal() }
                return
            }
            for line in lines {
                write(line)
                // A line counts until it is written.
                state.withLock { $0.bytes -= line.utf8.count }
            }
            if lost > 0 { write("\(lost.counted("log line")) dropped: standard error is read too slowly") }
        }
    }

    /// Returns when all lines queued so far are written, or after `patience`; nil waits without a limit.
    package func flush(within patience: Duration? = nil) {
        let done = ThreadSemaphore()
        let mustWait = state.withLock { state in
            if state.isWriting { state.waiting.append(done) }
            return state.isWriting
        }
        guard mustWait else { return }
        if let patience { done.wait(within: patience) } else { done.wait() }
    }
}

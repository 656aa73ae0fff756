import Glibc
import TestSupport

/// The server of one seed, which is killed and started again over its file.
final class JudgedServer {
    /// The reason to end a seed early.
    struct Halt: Error {
        let description: String
    }

    /// The arguments of the process: `bank` and its arguments.
    private let arguments: [String]
    private let limit: Duration
    private let deadline: ContinuousClock.Instant
    private(set) var program: ChildProgram?
    private(set) var kills = 0
    private(set) var stops = 0

    init(_ arguments: [String], within limit: Duration) {
        self.arguments = arguments
        self.limit = limit
        deadline = .now + limit
    }

    func start() async throws {
        let program = try ChildProgram(ServeProcess.built("Consistency"), arguments)
        self.program = program
        try await wait("for the server to listen") { program.lines.contains("listening") }
    }

    /// Ends it, and starts it again after a while.
    func restart(_ signal: Int32, after absence: Duration = .zero) async throws {
        guard let old = program else { return }
        if signal == SIGKILL { kills += 1 } else { stops += 1 }
        program = nil
        Glibc.kill(old.pid, signal)
        try await wait("for the server to end") { !old.isRunning }
        if signal == SIGTERM, old.end != "ended with 0" {
            throw Halt(description: "the server that was to stop \(old.end ?? ""): \(old.lines.suffix(20))")
        }
        try await Task.sleep(for: absence)
        try await start()
    }

    /// Throws if the process has ended by itself.
    func checkRunning() throws {
        guard let end = program?.end else { return }
        throw Halt(description: "the server \(end): \(program?.lines.suffix(20) ?? [])")
    }

    /// Waits for a condition. Throws if the process ends unexpectedly.
    func wait(_ what: String, until condition: () async throws -> Bool) async throws {
        while try await !condition() {
            try checkRunning()
            guard ContinuousClock.now < deadline else {
                throw Halt(description: "after \(limit) the seed still waited \(what)")
            }
            try await Task.sleep(for: .milliseconds(1))
        }
    }
}

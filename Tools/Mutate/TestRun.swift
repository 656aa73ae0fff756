import Foundation
import Glibc
import Mutations
import Synchronization

/// A test run in a separate process, which is ended at its first failure.
struct TestRun {
    enum End: Equatable {
        case passed
        case failed(test: String, message: String)
        case crashed(String)
        case tookTooLong(String)
    }

    let end: End
    let duration: Duration

    static let markName = "TREBUCHET_MUTATION_RUN"
    /// Starts with this program's process id, to distinguish processes of other runs.
    static let markValue = "\(getpid())-"
    static let mark = "\(markName)=\(markValue)"
    private static let numbers = Counter()

    /// - Parameters:
    ///   - filter: a regular expression for `swift test --filter`.
    ///   - skipped: regular expressions for `--skip`.
    ///   - mutant: the number of the applied mutant, or nil.
    ///   - reached: a file for the reached mutants.
    init(
        binary: String, filter: String, skipped: [String] = [], mutant: Int?, reached: String? = nil, limit: Duration
    ) async throws {
        let number = Self.numbers.next()
        let folder = "/tmp/mutation-\(getpid())-\(number)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var environment = ProcessInfo.processInfo.environment
        environment["TREBUCHET_MUTANT"] = mutant.map(String.init)
        environment["TREBUCHET_MUTANTS_REACHED"] = reached
        environment["TMPDIR"] = folder
        environment["SWIFT_BACKTRACE"] = "enable=no"
        let mark = Self.mark + "\(number)."
        var words = environment.map { "\($0.key)=\($0.value)" }
        words.append(mark)
        let events = folder + "/events"
        let started = ContinuousClock.now
        let pid = try Self.spawn(
            [
                binary, "--testing-library", "swift-testing", "--event-stream-version", "0",
                "--event-stream-output-path", events, "--filter", filter,
            ] + skipped.flatMap { ["--skip", $0] }, environment: words, output: folder + "/output")
        var reader = EventReader(path: events)
        var status: Int32 = 0
        var end: End?
        while true {
            let didEnd = waitpid(pid, &status, WNOHANG) == pid
            if let failure = reader.firstFailure() {
                end =
                    failure.message.contains("Time limit was exceeded")
                    ? .tookTooLong(failure.test) : .failed(test: failure.test, message: failure.message)
            } else if didEnd {
                end = Self.end(status, folder + "/output")
            } else if ContinuousClock.now - started > limit {
                end = .tookTooLong("")
            }
            if end != nil || didEnd {
                if !didEnd {
                    kill(-pid, SIGKILL)
                    while waitpid(pid, &status, 0) == -1, errno == EINTR {}
                }
                break
            }
            try? await Task.sleep(for: .milliseconds(20))
        }
        duration = ContinuousClock.now - started
        Self.killProcesses(with: mark)
        self.end = end ?? .passed
    }

    private static func end(_ status: Int32, _ output: String) -> End {
        if status == 0 { return .passed }
        let signal = status & 0x7f
        let text = (try? String(contentsOfFile: output, encoding: .utf8)) ?? ""
        let last = text.split(separator: "\n").last { $0.contains("Fatal error") }.map(String.init) ?? ""
        return .crashed(signal != 0 ? "signal \(signal) \(last)" : "exit \(status >> 8) \(last)")
    }

    /// Starts a session, so that all of its processes can be ended.
    private static func spawn(_ arguments: [String], environment: [String], output: String) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // POSIX_SPAWN_SETSID
        posix_spawnattr_setflags(&attributes, 0x80)
        var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        var variables: [UnsafeMutablePointer<CChar>?] = environment.map { strdup($0) } + [nil]
        defer { for word in words + variables { free(word) } }
        var pid: pid_t = 0
        let result = posix_spawn(&pid, arguments[0], &actions, &attributes, &words, &variables)
        guard result == 0 else { throw Failure(description: "\(arguments[0]): \(String(cString: strerror(result)))") }
        return pid
    }

    /// Ends the processes with the run's environment, including servers that left its session.
    static func killProcesses(with mark: String) {
        for _ in 0..<20 {
            var found = false
            for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? [] {
                guard let pid = pid_t(name), pid != getpid(),
                    let environment = FileManager.default.contents(atPath: "/proc/\(name)/environ"),
                    environment.range(of: Data(mark.utf8)) != nil
                else { continue }
                found = true
                kill(pid, SIGKILL)
            }
            if !found { return }
            usleep(20_000)
        }
    }
}

/// Reads the events of a test process while it writes them.
private struct EventReader {
    let path: String
    private var position: UInt64 = 0
    private var rest = Data()

    init(path: String) { self.path = path }

    private struct Record: Decodable {
        struct Payload: Decodable {
            struct Issue: Decodable {
                struct Location: Decodable {
                    let line: Int?
                    let _filePath: String?
                    let fileID: String?
                }
                let isKnown: Bool?
                let severity: String?
                let sourceLocation: Location?
            }
            struct Message: Decodable { let text: String }
            let kind: String?
            let issue: Issue?
            let messages: [Message]?
            let testID: String?
        }
        let kind: String
        let payload: Payload
    }

    mutating func firstFailure() -> (test: String, message: String)? {
        guard let file = FileHandle(forReadingAtPath: path) else { return nil }
        defer { try? file.close() }
        try? file.seek(toOffset: position)
        guard let new = try? file.readToEnd(), !new.isEmpty else { return nil }
        position += UInt64(new.count)
        rest += new
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            let line = rest[..<end]
            rest = Data(rest[(end + 1)...])
            guard line.range(of: Data("issueRecorded".utf8)) != nil,
                let record = try? JSONDecoder().decode(Record.self, from: line), record.payload.kind == "issueRecorded",
                record.payload.issue?.isKnown != true, record.payload.issue?.severity != "warning"
            else { continue }
            let place = record.payload.issue?.sourceLocation
            let text = record.payload.messages?.map(\.text).joined(separator: "; ") ?? ""
            return (record.payload.testID ?? "", "\(place?.fileID ?? ""):\(place?.line ?? 0) \(text)")
        }
        return nil
    }
}

/// Sequential numbers for names.
final class Counter: Sendable {
    private let value = Mutex(0)
    func next() -> Int {
        value.withLock { value in
            value += 1
            return value
        }
    }
}

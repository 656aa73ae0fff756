internal import Foundation
package import Glibc
internal import Platform
internal import Synchronization

/// A program in a separate process: records its output, detects its exit and reads its resource usage from the system.
package final class ChildProgram: Sendable {
    private struct State {
        var lines: [String] = []
        /// True if its output is no longer read; the pipe stays open unless it is to be closed.
        var isLeft = false
        var isClosed = false
        /// The status as returned by `waitpid`.
        var status: Int32?
    }

    package let pid: pid_t
    private let input: Int32
    private let state = Mutex(State())
    private let didPrint: (@Sendable (String) -> Void)?

    package struct DidNotStart: Error, CustomStringConvertible {
        package let description: String

        package init(description: String) { self.description = description }
    }

    package init(_ program: String, _ arguments: [String], didPrint: (@Sendable (String) -> Void)? = nil) throws {
        var (inEnds, outEnds): ([Int32], [Int32]) = ([-1, -1], [-1, -1])
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &inEnds) == 0, socketpair(AF_UNIX, kind, 0, &outEnds) == 0 else {
            throw DidNotStart(description: "socketpair: \(String(cString: strerror(errno)))")
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, inEnds[0], STDIN_FILENO)
        posix_spawn_file_actions_adddup2(&actions, outEnds[1], STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, outEnds[1], STDERR_FILENO)
        var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var pid: pid_t = 0
        let result = posix_spawn(&pid, program, &actions, nil, &words, environ)
        close(inEnds[0])
        close(outEnds[1])
        guard result == 0 else {
            close(inEnds[1])
            close(outEnds[0])
            throw DidNotStart(description: "\(program): \(String(cString: strerror(result)))")
        }
        self.pid = pid
        input = inEnds[1]
        self.didPrint = didPrint
        let output = outEnds[0]
        startThread { [self] in readLines(output) }
    }

    private func readLines(_ output: Int32) {
        var unread: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while case let count = read(output, &buffer, buffer.count), count > 0 {
            if state.withLock({ $0.isLeft }) { break }
            unread += buffer[..<count]
            while let end = unread.firstIndex(of: 0x0A) {
                let line = String(decoding: unread[..<end], as: UTF8.self)
                unread.removeSubrange(...end)
                state.withLock { state in
                    state.lines.append(line)
                    if state.lines.count > 400 { state.lines.removeFirst(200) }
                }
                didPrint?(line)
            }
        }
        let isOpen = state.withLock { $0.isLeft && !$0.isClosed }
        if !isOpen { close(output) }
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        state.withLock { $0.status = status }
        if isOpen { close(output) }
        close(input)
    }

    /// Stops reading from its next output on, so that the pipe fills, or closes the pipe at that point.
    package func leaveOutput(isClosed: Bool) {
        state.withLock { ($0.isLeft, $0.isClosed) = (true, isClosed) }
    }

    /// The last lines of its output.
    package var lines: [String] { state.withLock { $0.lines } }

    package var isRunning: Bool { state.withLock { $0.status == nil } }

    /// How it exited; nil while it runs.
    package var end: String? {
        state.withLock { $0.status }.map { status in
            let signal = status & 0x7F
            return signal == 0
                ? "ended with \(status >> 8 & 0xFF)" : "was ended by \(String(cString: strsignal(signal)))"
        }
    }

    package func tell(_ line: String) {
        guard isRunning else { return }
        let bytes = Array((line + "\n").utf8)
        _ = bytes.withUnsafeBytes { send(input, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    }

    package func kill() { if isRunning { Glibc.kill(pid, SIGKILL) } }

    // MARK: Resource usage from the system

    /// Memory in use, in KiB.
    package var residentKiB: Int {
        let pages = file("statm").split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * Int(getpagesize()) / 1024
    }

    /// The processor time used so far, in seconds.
    package var processorSeconds: Double {
        // The name of the program, in parentheses, may contain any character.
        let fields = file("stat").split(separator: ")").last?.split(separator: " ") ?? []
        guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else { return 0 }
        return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    package var descriptorCount: Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/fd").count) ?? 0
    }

    /// The targets of its descriptors.
    package var descriptors: [String] {
        let folder = "/proc/\(pid)/fd"
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)") }
            .sorted()
    }

    private func file(_ name: String) -> String {
        (try? String(contentsOfFile: "/proc/\(pid)/\(name)", encoding: .utf8)) ?? ""
    }
}

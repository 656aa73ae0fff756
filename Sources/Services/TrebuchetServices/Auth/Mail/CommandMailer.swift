internal import Platform
internal import Synchronization
internal import Trebuchet

#if canImport(Glibc)
    @preconcurrency internal import Glibc
#endif

/// Sends codes and notices with a program. The program gets the mail with its headers on standard input, and the address in the
/// environment as `TREBUCHET_MAIL_TO`; a code is in `TREBUCHET_MAIL_CODE` too. No input of a client is passed through a shell
/// or in arguments.
///
/// The program has a process group, which is killed as a whole when the program takes too long or writes more than 64 KiB.
/// Up to 4 KiB of its output per mail are logged, escaped.
///
///     CommandMailer(["/usr/sbin/sendmail", "-t"])
public struct CommandMailer: MagicCodeMailer {
    private let command: [String]
    private let sender: String
    private let timeout: Duration
    private let log: @Sendable (String) -> Void

    /// - Parameters:
    ///   - command: the path of the program, or its name if it is on the `PATH`, followed by its arguments.
    ///   - sender: the sender address of mails. Default `trebuchet@localhost`.
    ///   - timeout: the time after which the program and its children are killed. Default 30 seconds.
    ///   - log: receives each line of output of the program. Nil, the default, for standard error.
    public init(
        _ command: [String], sender: String = "trebuchet@localhost", timeout: Duration = .seconds(30),
        log: (@Sendable (String) -> Void)? = nil
    ) {
        precondition(!command.isEmpty, "a mail command must not be empty")
        self.command = command
        self.sender = sender
        self.timeout = timeout
        self.log = log ?? { StandardStream.error.write(soon: $0) }
    }

    /// Runs the program and waits for its end. Throws ``MailError`` when it does not start, ends with a status other than 0,
    /// exceeds the timeout or writes too much; then it is killed.
    public func send(_ code: String, to address: String) async throws {
        try await send(try MailMessage(code: code, from: sender, to: address), ["TREBUCHET_MAIL_CODE": code])
    }

    /// Runs the program as for a code, but without `TREBUCHET_MAIL_CODE`.
    public func send(_ notice: AccountNotice, to address: String) async throws {
        try await send(try MailMessage(notice, from: sender, to: address), [:])
    }

    private func send(_ mail: MailMessage, _ environment: [String: String]) async throws {
        var environment = environment
        environment["TREBUCHET_MAIL_TO"] = mail.recipient
        let child = try Child(command, input: Array(mail.text.utf8), environment: environment)
        let patience = Task {
            try await Task.sleep(for: timeout)
            child.kill(because: "did not end within \(timeout) and was killed")
        }
        defer { patience.cancel() }
        let end = await child.waitForExit()
        for line in end.output.lines { log("mail command '\(command[0])': \(line)") }
        guard let failure = end.failure else { return }
        throw MailError("the mail command '\(command[0])' \(failure)")
    }
}

/// The first bytes that a program writes.
private struct CommandOutput {
    /// The maximum number of bytes that are logged, and that a program may write.
    private static let loggedBytes = 4 << 10
    static let maximumBytes = 64 << 10

    private var bytes: [UInt8] = []
    private var count = 0

    /// Returns false when there are too many.
    mutating func append(_ more: some Collection<UInt8>) -> Bool {
        bytes += more.prefix(Self.loggedBytes - bytes.count)
        count += more.count
        return count <= Self.maximumBytes
    }

    /// The escaped lines, and the number of further bytes.
    var lines: [String] {
        let lines = bytes.split { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
        return lines.map { LogLine.of(String(decoding: $0, as: UTF8.self)) }
            + (count > bytes.count ? ["… (\(count - bytes.count) more bytes)"] : [])
    }
}

/// A child process, which leads a process group.
private final class Child: Sendable {
    /// How a child has ended.
    struct End {
        let output: CommandOutput
        /// Nil after success.
        let failure: String?
    }

    /// The time between two checks of whether the program has ended while a child of it keeps the output open.
    private static let checkInterval: Int32 = 100

    private struct State {
        var hasEnded = false
        var reason: String?
    }

    private let processID: pid_t
    private let output: Int32
    private let state = Mutex(State())

    /// - Parameter input: written before the program runs, so it must fit into a pipe: at most 4 KiB.
    init(_ command: [String], input: [UInt8], environment: [String: String]) throws {
        guard let pipe = Pipe() else { throw MailError("creating a pipe failed: \(Self.text(errno))") }
        defer { close(pipe.readEnd) }
        let count = write(pipe.writeEnd, input, input.count)
        close(pipe.writeEnd)
        guard count == input.count else { throw MailError("the mail is larger than a pipe buffer") }
        guard let outputPipe = Pipe() else { throw MailError("creating a pipe failed: \(Self.text(errno))") }
        defer { close(outputPipe.writeEnd) }
        _ = fcntl(outputPipe.readEnd, F_SETFL, O_NONBLOCK)

        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, pipe.readEnd, STDIN_FILENO)
        posix_spawn_file_actions_adddup2(&actions, outputPipe.writeEnd, STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, outputPipe.writeEnd, STDERR_FILENO)
        // Pool threads block signals; a child would inherit the mask and ignore SIGTERM.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        // A server ignores SIGPIPE, and a child would inherit that.
        var ignored = sigset_t()
        sigemptyset(&ignored)
        sigaddset(&ignored, SIGPIPE)
        posix_spawnattr_setsigdefault(&attributes, &ignored)
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP))
        var words: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
        var variables = Self.variables(with: environment)
        defer { for text in words + variables { free(text) } }
        var processID: pid_t = 0
        let status = posix_spawnp(&processID, command[0], &actions, &attributes, &words, &variables)
        guard status == 0 else {
            close(outputPipe.readEnd)
            throw MailError("the mail command '\(command[0])' failed to start: \(Self.text(status))")
        }
        self.processID = processID
        output = outputPipe.readEnd
    }

    deinit { close(output) }

    private static func variables(with added: [String: String]) -> [UnsafeMutablePointer<CChar>?] {
        var variables: [UnsafeMutablePointer<CChar>?] = []
        var next = environ
        while let text = next.pointee {
            variables.append(strdup(text))
            next += 1
        }
        for (name, value) in added { variables.append(strdup("\(name)=\(value)")) }
        return variables + [nil]
    }

    private static func text(_ number: Int32) -> String { String(cString: strerror(number)) }

    /// Reads the output and waits for the end of the program. Its children may continue: their output is discarded.
    func waitForExit() async -> End {
        await onThread {
            var written = CommandOutput()
            self.readOutput(into: &written)
            // The process stays a zombie until `kill` can no longer use its number.
            _ = self.waitForEnd(WEXITED | WNOWAIT)
            let reason = self.state.withLock { state in
                state.hasEnded = true
                return state.reason
            }
            var status: Int32 = 0
            while waitpid(self.processID, &status, 0) < 0, errno == EINTR {}
            return End(output: written, failure: reason ?? Self.failure(status))
        }
    }

    private static func failure(_ status: Int32) -> String? {
        let (code, signal) = ((status >> 8) & 0xFF, status & 0x7F)
        guard signal == 0 else { return "was terminated by signal \(signal)" }
        return code == 0 ? nil : "exited with status \(code)"
    }

    /// Reads until the program has ended, or has written too much.
    private func readOutput(into written: inout CommandOutput) {
        var hasEnded = false
        var buffer = [UInt8](repeating: 0, count: 4 << 10)
        while true {
            var ready = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
            _ = poll(&ready, 1, hasEnded ? 0 : Self.checkInterval)
            let count = read(output, &buffer, buffer.count)
            if count > 0 {
                guard written.append(buffer.prefix(count)) else {
                    return kill(
                        because: "wrote more than \(CommandOutput.maximumBytes >> 10) KiB of output and was killed")
                }
            } else if count < 0, errno == EINTR {
                continue
            } else if count == 0 || hasEnded {
                return
            } else {
                hasEnded = waitForEnd(WEXITED | WNOWAIT | WNOHANG)
            }
        }
    }

    /// Returns whether the program has ended.
    private func waitForEnd(_ options: Int32) -> Bool {
        var information = siginfo_t()
        while waitid(P_PID, id_t(processID), &information, options) < 0 { if errno != EINTR { return true } }
        return information.si_signo == SIGCHLD
    }

    /// Kills the process and its group unless it has ended, because its number may belong to another process by then.
    func kill(because reason: String) {
        state.withLock { state in
            guard !state.hasEnded else { return }
            state.reason = state.reason ?? reason
            _ = Glibc.kill(-processID, SIGKILL)
        }
    }
}

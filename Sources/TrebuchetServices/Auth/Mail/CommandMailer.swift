internal import Platform
internal import Synchronization

#if canImport(Glibc)
    @preconcurrency internal import Glibc
#endif

/// Sends codes and notices with a program. The program gets the mail with its headers on standard input, and the address in the
/// environment as `TREBUCHET_MAIL_TO`; a code is in `TREBUCHET_MAIL_CODE` too. No input of a client is passed through a shell
/// or in arguments.
///
///     CommandMailer(["/usr/sbin/sendmail", "-t"])
public struct CommandMailer: MagicCodeMailer {
    private let command: [String]
    private let sender: String
    private let timeout: Duration

    /// - Parameters:
    ///   - command: the path of the program, or its name if it is on the `PATH`, followed by its arguments.
    ///   - sender: the sender address of mails. Default `trebuchet@localhost`.
    ///   - timeout: the time after which the program is killed. Default 30 seconds.
    public init(_ command: [String], sender: String = "trebuchet@localhost", timeout: Duration = .seconds(30)) {
        precondition(!command.isEmpty, "a mail command must not be empty")
        self.command = command
        self.sender = sender
        self.timeout = timeout
    }

    /// Runs the program and waits for its end. Throws ``MailError`` when it does not start, ends with a status other than 0, or
    /// exceeds the timeout; then it is killed.
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
            child.kill()
        }
        defer { patience.cancel() }
        let status = await child.waitForExit()
        guard status == 0 else {
            let how = status < 0 ? "was terminated by signal \(-status)" : "exited with status \(status)"
            throw MailError("the mail command '\(command[0])' \(how)")
        }
    }
}

/// A child process.
private final class Child: Sendable {
    private let processID: pid_t
    private let hasEnded = Mutex(false)

    /// - Parameter input: written before the program runs, so it must fit into a pipe: at most 4 KiB.
    init(_ command: [String], input: [UInt8], environment: [String: String]) throws {
        guard let pipe = Pipe() else { throw MailError("creating a pipe failed: \(Self.text(errno))") }
        defer { close(pipe.readEnd) }
        let count = write(pipe.writeEnd, input, input.count)
        close(pipe.writeEnd)
        guard count == input.count else { throw MailError("the mail is larger than a pipe buffer") }

        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, pipe.readEnd, STDIN_FILENO)
        // Standard output goes to standard error, because the server's standard output must not contain it.
        posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO)
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
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var words: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
        var variables = Self.variables(with: environment)
        defer { for text in words + variables { free(text) } }
        var processID: pid_t = 0
        let status = posix_spawnp(&processID, command[0], &actions, &attributes, &words, &variables)
        guard status == 0 else {
            throw MailError("the mail command '\(command[0])' failed to start: \(Self.text(status))")
        }
        self.processID = processID
    }

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

    /// Waits for the end; returns the exit status, or the negated signal number.
    func waitForExit() async -> Int32 {
        await onThread {
            var information = siginfo_t()
            // The process stays a zombie until `kill` can no longer use its number.
            while waitid(P_PID, id_t(self.processID), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
            self.hasEnded.withLock { $0 = true }
            var status: Int32 = 0
            while waitpid(self.processID, &status, 0) < 0, errno == EINTR {}
            return status & 0x7F == 0 ? (status >> 8) & 0xFF : -(status & 0x7F)
        }
    }

    /// Kills the process unless it has ended, because its number may belong to another process by then.
    func kill() {
        hasEnded.withLock { hasEnded in
            if !hasEnded { _ = Glibc.kill(processID, SIGKILL) }
        }
    }
}

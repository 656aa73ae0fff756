package import Glibc
internal import Platform

/// A program in a separate process, whose output a test reads. Waiting for it never blocks a thread of the pool: with two threads, two
/// tests that wait for their children would stop all others, including the tests that communicate with the children. The process is
/// terminated with its object: by `SIGKILL`, if it has not exited by then.
package final class ChildProcess {
    package struct Outcome: Equatable, Sendable {
        /// The exit code, or the negated signal number of a process that a signal terminated.
        package let status: Int32
        /// The output that `nextLine()` has not read.
        package let output: String
        package let error: String
    }

    package enum ErrorOutput {
        /// The standard error stream of the test.
        case inherited
        /// The pipe of the output.
        case merged
        /// Collected in `Outcome.error`.
        case captured
    }

    package struct DidNotStart: Error {
        let program: String
        let errno: Int32
    }

    package let processID: pid_t
    private let input: PipeEnd
    private let output: PipeEnd
    private let error: PipeEnd?
    private var unread: [UInt8] = []
    private var status: Int32?

    package init(_ program: String, _ arguments: [String], error errorOutput: ErrorOutput = .inherited) throws {
        // Closed on exec: a child that inherits another child's pipe would keep it open after that child has exited.
        let (inputRead, inputWrite) = try PipeEnd.pair()
        let (outputRead, outputWrite) = try PipeEnd.pair()
        let errorPipe = errorOutput == .captured ? try PipeEnd.pair() : nil
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, inputRead.descriptor, STDIN_FILENO)
        posix_spawn_file_actions_adddup2(&actions, outputWrite.descriptor, STDOUT_FILENO)
        switch errorOutput {
        case .inherited: break
        case .merged: posix_spawn_file_actions_adddup2(&actions, outputWrite.descriptor, STDERR_FILENO)
        case .captured: posix_spawn_file_actions_adddup2(&actions, errorPipe!.write.descriptor, STDERR_FILENO)
        }
        var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        // Threads of the pool block signals, and children would inherit the mask.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        var processID: pid_t = 0
        let result = posix_spawn(&processID, program, &actions, &attributes, &words, environ)
        guard result == 0 else { throw DidNotStart(program: program, errno: result) }
        self.processID = processID
        input = inputWrite
        output = outputRead
        error = errorPipe?.read
    }

    deinit {
        guard status == nil else { return }
        kill(processID, SIGKILL)
        var ignored: Int32 = 0
        waitpid(processID, &ignored, 0)
    }

    /// Returns the next line of its output without the line terminator, or nil when it has closed its output.
    package func nextLine() async -> String? {
        while true {
            if let end = unread.firstIndex(of: 0x0A) {
                defer { unread.removeSubrange(...end) }
                return String(decoding: unread[..<end], as: UTF8.self)
            }
            let bytes = await output.read()
            guard !bytes.isEmpty else { return nil }
            unread += bytes
        }
    }

    /// Writes a line to its input. The call blocks while the child does not read and more than some 100 KiB are buffered.
    package func send(_ line: String) throws { try input.write(Array((line + "\n").utf8)) }

    package func signal(_ number: Int32) {
        if status == nil { kill(processID, number) }
    }

    /// Closes its input and waits until it exits.
    package func finish() async -> Outcome {
        input.close()
        let error = error
        async let errorBytes = error?.readToEnd() ?? []
        let outputBytes = unread + (await output.readToEnd())
        unread = []
        let status = if let status { status } else { await exitStatus() }
        self.status = status
        return Outcome(
            status: status, output: String(decoding: outputBytes, as: UTF8.self),
            error: String(decoding: await errorBytes, as: UTF8.self))
    }

    private func exitStatus() async -> Int32 {
        let processID = processID
        return await onThread {
            var status: Int32 = 0
            while waitpid(processID, &status, 0) < 0, errno == EINTR {}
            return status & 0x7F == 0 ? (status >> 8) & 0xFF : -(status & 0x7F)
        }
    }
}

import Commands
import Glibc
import Networking
import Platform

/// The measured server: a running one, or `trebuchet serve` in a separate process, so that its memory can be measured.
struct MeasuredServer {
    static let url = OptionSpec("--url", "URL", "a running server (a separate process)")
    static let pid = OptionSpec("--pid", "PID", "process of the server at --url, to measure it")

    let url: String
    /// Nil for a running server without `--pid`.
    let process: ServerProcess?
    /// The started process; nil for a running server.
    private let child: ServerChild?

    var isOwned: Bool { child != nil }

    /// Uses the server of `--url` and `--pid`, or starts one with the example actors and without services. Services identify
    /// callers, which costs each connection something.
    ///
    /// - Parameters:
    ///   - options: additional options of a started server.
    ///   - reactors: the number of reactors of a started server.
    init(_ arguments: ParsedArguments, _ options: [String] = [], reactors: Int = 1) throws {
        guard let url = arguments.string("--url") else {
            if arguments.has("--pid") { throw UsageError("--pid requires --url") }
            self = try MeasuredServer(["--examples", "--bench"] + options, reactors: reactors)
            return
        }
        self.url = url
        process = try arguments.int("--pid", in: 1...Int(Int32.max)).map { ServerProcess(pid: Int32($0)) }
        child = nil
    }

    /// Starts a server and waits until it listens.
    init(_ options: [String], reactors: Int = 1) throws {
        try self.init(command: ["serve", "--port", "0", "--reactors", "\(reactors)"] + options)
    }

    /// Starts a command of this program that prints its address, and waits until it listens.
    ///
    /// - Parameter cores: the cores that it may use; nil for all.
    init(command: [String], cores: [Int]? = nil) throws {
        guard let pipe = Pipe(), let lifetimePipe = Pipe() else {
            throw UsageError("pipe: \(String(cString: strerror(errno)))")
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawn_file_actions_adddup2(&actions, pipe.writeEnd, STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, lifetimePipe.readEnd, STDIN_FILENO)
        defer { posix_spawn_file_actions_destroy(&actions) }
        var words: [UnsafeMutablePointer<CChar>?] =
            (["trebuchet"] + command).map { $0.withCString { strdup($0) } } + [nil]
        defer { for word in words { free(word) } }
        var pid: pid_t = 0
        // Its input closes when this process ends for any reason.
        var variables: [UnsafeMutablePointer<CChar>?] = []
        var next = environ
        while let variable = next.pointee {
            variables.append(variable)
            next += 1
        }
        let mark = strdup(ServerChild.endsWithInput + "=1")
        defer { free(mark) }
        variables += [mark, nil]
        let status = posix_spawn(&pid, "/proc/self/exe", &actions, nil, &words, &variables)
        close(lifetimePipe.readEnd)
        guard status == 0 else { throw UsageError("starting a server: \(String(cString: strerror(status)))") }
        // Before it starts other threads, which inherit the setting.
        if let cores { Cores.keep(pid, on: cores) }
        close(pipe.writeEnd)
        var text = ""
        var byte: UInt8 = 0
        while !text.hasSuffix(" ("), read(pipe.readEnd, &byte, 1) == 1 {
            text.unicodeScalars.append(UnicodeScalar(byte))
        }
        guard let url = text.split(separator: " ").first(where: { $0.contains("://") }) else {
            let command = "trebuchet \(command.joined(separator: " "))"
            throw UsageError(
                text.isEmpty ? "'\(command)' did not start; see its output" : "'\(command)' did not start: \(text)")
        }
        self.url = String(url)
        process = ServerProcess(pid: pid)
        child = ServerChild(pid, input: lifetimePipe.writeEnd)
    }

    /// Returns the process, for a benchmark that requires it.
    func knownProcess() throws(UsageError) -> ServerProcess {
        guard let process else { throw UsageError("--url requires --pid, to measure the server") }
        return process
    }

    /// Stops a started server.
    func stop() { child?.stop() }
}

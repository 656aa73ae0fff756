import Commands
import Glibc
import Networking
import Platform

/// The server that is measured: one that runs already, or `trebuchet serve` in a process of its own, so that its memory is its
/// own.
struct MeasuredServer {
    static let url = OptionSpec("--url", "URL", "a running server; without it one is started in a process of its own")
    static let pid = OptionSpec("--pid", "PID", "the process of the server at --url, to look into it")

    let url: String
    /// nil of one that was named by its address alone.
    let process: ServerProcess?
    /// That of its own; nil of one that runs by itself.
    private let child: ServerChild?

    var isOurs: Bool { child != nil }

    /// The one that `--url` and `--pid` name, or one of its own that hosts the example actors and no services: these know their
    /// callers, and so cost each connection something.
    ///
    /// - Parameters:
    ///   - options: more for the one of its own.
    ///   - reactors: of the one of its own.
    init(_ arguments: ParsedArguments, _ options: [String] = [], reactors: Int = 1) throws {
        guard let url = arguments.string("--url") else {
            if arguments.has("--pid") { throw UsageError("--pid goes with --url") }
            self = try MeasuredServer(["--bench"] + options, reactors: reactors)
            return
        }
        self.url = url
        process = try arguments.int("--pid", in: 1...Int(Int32.max)).map { ServerProcess(pid: Int32($0)) }
        child = nil
    }

    /// Starts it and waits until it listens.
    init(_ options: [String], reactors: Int = 1) throws {
        try self.init(command: ["serve", "--port", "0", "--reactors", "\(reactors)"] + options)
    }

    /// Starts a command of this program that prints where it listens, and waits until it does.
    ///
    /// - Parameter cores: on which it may run; nil for all.
    init(command: [String], cores: [Int]? = nil) throws {
        guard let pipe = Pipe(), let life = Pipe() else {
            throw UsageError("pipe: \(String(cString: strerror(errno)))")
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawn_file_actions_adddup2(&actions, pipe.writeEnd, STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, life.readEnd, STDIN_FILENO)
        defer { posix_spawn_file_actions_destroy(&actions) }
        var words: [UnsafeMutablePointer<CChar>?] =
            (["trebuchet"] + command).map { $0.withCString { strdup($0) } } + [nil]
        defer { for word in words { free(word) } }
        var pid: pid_t = 0
        // Its input ends when this process does, however that is.
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
        close(life.readEnd)
        guard status == 0 else { throw UsageError("starting a server: \(String(cString: strerror(status)))") }
        // Before it has other threads, which inherit it.
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
                text.isEmpty ? "'\(command)' did not start, as it says itself" : "'\(command)' did not start: \(text)")
        }
        self.url = String(url)
        process = ServerProcess(pid: pid)
        child = ServerChild(pid, input: life.writeEnd)
    }

    /// For a benchmark that cannot do without.
    func knownProcess() throws(UsageError) -> ServerProcess {
        guard let process else { throw UsageError("--url needs --pid, to look into the server") }
        return process
    }

    /// Ends the one of its own.
    func stop() { child?.stop() }
}

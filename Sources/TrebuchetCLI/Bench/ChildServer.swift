import Glibc
import Platform

/// `trebuchet serve` in a process of its own, so that its memory is its own.
final class ChildServer {
    let pid: Int32
    let url: String

    /// Starts it with one reactor and waits until it listens.
    ///
    /// - Parameter services: what it hosts. Default: none, but the example actors: services know their callers, and so cost each
    ///   connection something.
    init(_ options: [String] = [], services: String? = nil) throws {
        guard let pipe = Pipe() else { throw UsageError("pipe: \(String(cString: strerror(errno)))") }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawn_file_actions_adddup2(&actions, pipe.writeEnd, STDOUT_FILENO)
        defer { posix_spawn_file_actions_destroy(&actions) }
        let hosted = services.map { ["--services", $0] } ?? ["--services", "none", "--demo"]
        let line = ["trebuchet", "serve", "--port", "0", "--reactors", "1"] + hosted + options
        var words: [UnsafeMutablePointer<CChar>?] = line.map { $0.withCString { strdup($0) } } + [nil]
        defer { for word in words { free(word) } }
        var pid: pid_t = 0
        let status = posix_spawn(&pid, "/proc/self/exe", &actions, nil, &words, environ)
        guard status == 0 else { throw UsageError("starting a server: \(String(cString: strerror(status)))") }
        close(pipe.writeEnd)
        var text = ""
        var byte: UInt8 = 0
        while !text.hasSuffix(" ("), read(pipe.readEnd, &byte, 1) == 1 {
            text.unicodeScalars.append(UnicodeScalar(byte))
        }
        guard let url = text.split(separator: " ").first(where: { $0.hasPrefix("ws://") }) else {
            throw UsageError("the server did not start: \(text)")
        }
        self.pid = pid
        self.url = String(url)
    }

    func stop() {
        kill(pid, SIGKILL)
        var status: Int32 = 0
        waitpid(pid, &status, 0)
    }
}

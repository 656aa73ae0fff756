import Glibc

/// `trebuchet serve`, or another command that listens, in a separate process on a free port; built with the tests.
package final class ServeProcess {
    /// `ws://127.0.0.1:54321`, with TLS `wss:`
    package let url: String
    private let process: ChildProcess

    package struct DidNotStart: Error {
        let output: String
    }

    /// Starts it, by default with the example actors, and waits until it listens.
    package init(command: [String] = ["serve", "--examples"], arguments: [String] = []) async throws {
        process = try ChildProcess(Self.tool, command + ["--port", "0"] + arguments)
        let line = await process.nextLine() ?? ""
        guard let word = line.split(separator: " ").first(where: { $0.hasPrefix("ws://") || $0.hasPrefix("wss://") })
        else { throw DidNotStart(output: line) }
        url = String(word)
    }

    /// The executable `trebuchet`.
    package static var tool: String { built("trebuchet") }

    /// The path of an executable beside the running test bundle.
    package static func built(_ name: String) -> String {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &path, path.count)
        let program = path.prefix(max(count, 0)).map { UInt8(bitPattern: $0) }
        let folder = program.prefix(upTo: program.lastIndex(of: UInt8(ascii: "/")) ?? 0)
        return String(decoding: folder, as: UTF8.self) + "/" + name
    }

    /// Sends it a signal, for example `SIGHUP`.
    package func signal(_ number: Int32) { process.signal(number) }

    /// Kills it immediately with `SIGKILL`.
    package func kill() async {
        process.signal(SIGKILL)
        _ = await process.finish()
    }

    /// Shuts it down with `SIGTERM` and returns its exit code.
    @discardableResult
    package func stop() async -> Int32 {
        process.signal(SIGTERM)
        return await process.finish().status
    }
}

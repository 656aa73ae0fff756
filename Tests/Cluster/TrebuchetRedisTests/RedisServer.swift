import Foundation
import Glibc
import TestSupport
import Testing

@testable import TrebuchetRedis

/// A redis-server for tests, on a free port of this machine and with a temporary folder. It is stopped when its object is released, and
/// with the test process. `@unchecked Sendable`: only `stop` changes its state, once, at the end of a test.
final class RedisServer: @unchecked Sendable {
    static let isInstalled = ["redis-server", "redis-cli", "redis-sentinel"].allSatisfy {
        FileManager.default.isExecutableFile(atPath: "/usr/bin/" + $0)
    }

    struct DidNotStart: Error { let output: String }

    let port: Int
    let folder: URL
    private let processID: pid_t
    private var isRunning = true
    /// A shell that stops the server when its input is closed.
    private let process: ChildProcess

    /// - Parameters:
    ///   - port: a free port by default.
    ///   - folder: the folder of an earlier server, whose data it uses.
    ///   - options: options beside port, folder and persistence, as `--requirepass x`.
    init(
        port: Int? = nil, folder: URL? = nil, program: String = "redis-server", config: String? = nil,
        options: [String] = []
    ) async throws {
        let folder = folder ?? FileManager.default.temporaryDirectory.appending(path: "trebuchet-redis-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        var output = ""
        // Another process may take the port before the server binds it.
        for _ in 0..<(port == nil ? 5 : 1) {
            let chosen = port ?? Self.freePort()
            let file = folder.appending(path: "redis.conf")
            try (config ?? "save \"\"\nappendonly yes\n").write(to: file, atomically: true, encoding: .utf8)
            let script = "\"$@\" & echo $!; cat >/dev/null; kill -KILL $!; wait"
            let arguments =
                ["-c", script, "sh", "/usr/bin/" + program, file.path, "--port", "\(chosen)", "--bind", "127.0.0.1"]
                + ["--dir", folder.path] + options
            let process = try ChildProcess("/bin/sh", arguments, error: .merged)
            let processID = pid_t(await process.nextLine() ?? "") ?? 0
            while let line = await process.nextLine() {
                output += line + "\n"
                guard line.contains("eady to accept connections") || line.contains("Sentinel ID is") else { continue }
                (self.port, self.folder, self.processID, self.process) = (chosen, folder, processID, process)
                return
            }
        }
        throw DidNotStart(output: output)
    }

    deinit {
        // Killed before its shell exits, which could not do it any more.
        if isRunning { kill(processID, SIGKILL) }
        try? FileManager.default.removeItem(at: folder)
    }

    var url: String { "redis://127.0.0.1:\(port)" }
    var endpoint: RedisURL.Endpoint { .init(host: "127.0.0.1", port: port) }

    /// Kills it immediately.
    func stop() async {
        isRunning = false
        _ = await process.finish()
    }

    /// Stops and continues the process.
    func signal(_ number: Int32) { kill(processID, number) }

    /// Returns the output of `redis-cli`.
    @discardableResult
    func cli(_ words: String...) async throws -> String {
        let cli = try ChildProcess("/usr/bin/redis-cli", ["-p", "\(port)"] + words, error: .merged)
        return await cli.finish().output.trimmingCharacters(in: .newlines)
    }

    static func freePort() -> Int {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        inet_pton(AF_INET, "127.0.0.1", &name.sin_addr)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = bind(descriptor, $0, length)
                getsockname(descriptor, $0, &length)
            }
        }
        return Int(UInt16(bigEndian: name.sin_port))
    }
}

/// Provides the tests of a suite with one server, which is stopped after the last of them.
struct SharedRedisServer: SuiteTrait, TestScoping {
    @TaskLocal static var current: RedisServer?

    var isRecursive: Bool { false }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        let server = try await RedisServer()
        try await Self.$current.withValue(server) { try await function() }
        await server.stop()
    }
}

extension SuiteTrait where Self == SharedRedisServer {
    static var redisServer: Self { Self() }
}

extension Trait where Self == ConditionTrait {
    static var hasRedis: Self {
        .enabled(if: RedisServer.isInstalled, "redis-server is not installed: scripts/bootstrap --redis")
    }
}

extension RedisError {
    /// The name of its case.
    var kind: String {
        switch self {
        case .unavailable: "unavailable"
        case .unknownOutcome: "unknownOutcome"
        case .overloaded: "overloaded"
        case .reply: "reply"
        case .closed: "closed"
        }
    }
}

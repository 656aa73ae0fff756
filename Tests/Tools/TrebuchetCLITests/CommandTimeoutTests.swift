import Foundation
import Glibc
import TestSupport
import Testing
import Trebuchet
import TrebuchetServices

/// Every command that sends a request ends, with status 1 and a reason, when the server is silent or refuses.
@Suite(.timeLimit(.minutes(5))) struct CommandTimeoutTests {
    /// Never responds to connections: the system completes them, and no thread accepts them.
    private final class SilentListener: Sendable {
        let address: String
        private let descriptor: Int32

        init(path: String? = nil) throws {
            if let path {
                descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
                var name = sockaddr_un()
                name.sun_family = sa_family_t(AF_UNIX)
                withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: path.utf8) }
                try Self.bind(descriptor, &name)
                address = path
            } else {
                let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                self.descriptor = descriptor
                var name = sockaddr_in()
                name.sin_family = sa_family_t(AF_INET)
                name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
                try Self.bind(descriptor, &name)
                var size = socklen_t(MemoryLayout<sockaddr_in>.size)
                withUnsafeMutablePointer(to: &name) { pointer in
                    _ = pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        getsockname(descriptor, $0, &size)
                    }
                }
                address = "127.0.0.1:\(UInt16(bigEndian: name.sin_port))"
            }
        }

        deinit { close(descriptor) }

        /// Waits until a client has connected.
        func isConnected() async -> Bool {
            await eventually(within: .seconds(60)) {
                var state = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                return poll(&state, 1, 0) == 1
            }
        }

        private static func bind<Name>(_ descriptor: Int32, _ name: inout Name) throws {
            let status = withUnsafePointer(to: &name) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    Glibc.bind(descriptor, $0, socklen_t(MemoryLayout<Name>.size))
                }
            }
            try #require(status == 0 && listen(descriptor, 64) == 0)
        }
    }

    private func run(_ arguments: [String]) async throws -> ChildProcess.Outcome {
        try await process(arguments).finish()
    }

    /// Starts the tool, as a user who is not signed in.
    private func process(_ arguments: [String]) throws -> ChildProcess {
        try ChildProcess(
            "/usr/bin/env", ["XDG_STATE_HOME=/nowhere", ServeProcess.tool] + arguments, error: .captured)
    }

    @Test("the first signal ends every command that connects to a silent server", arguments: remote, [SIGINT, SIGTERM])
    func signalled(command: [String], signal: Int32) async throws {
        let server = try SilentListener()
        let process = try process(command + ["--url", "ws://\(server.address)", "--timeout", "30"])
        #expect(await server.isConnected())
        process.signal(signal)
        let outcome = await process.finish()
        #expect(outcome.status == -signal && outcome.output.isEmpty && outcome.error.isEmpty, "\(outcome)")
    }

    @Test("the first signal ends every command that waits for a silent coordination store, inspector or admin socket")
    func othersSignalled() async throws {
        for signal in [SIGINT, SIGTERM] {
            for command in [
                ["cluster", "status"], ["cluster", "owner", "a"], ["cluster", "drain", "a"], ["inspect", "overview"],
                ["inspect", "calls", "--follow"], ["inspect", "logs", "--follow"], ["top"], ["top", "--once"],
                ["admin", "collections"], ["admin", "export"],
            ] {
                let path = NSTemporaryDirectory() + "t-\(UInt32.random(in: 0 ..< .max)).sock"
                defer { unlink(path) }
                let server = try SilentListener(path: command[0] == "admin" ? path : nil)
                let address =
                    switch command[0] {
                    case "cluster": ["--cluster", "redis://\(server.address)"]
                    case "admin": ["--admin-socket", server.address]
                    default: ["--url", "http://\(server.address)/#token=t"]
                    }
                let process = try process(command + address + ["--timeout", "30"])
                #expect(await server.isConnected())
                process.signal(signal)
                let status = await process.finish().status
                #expect(status == -signal || status == 128 + signal, "\(command): \(status)")
            }
        }
    }

    private static let remote: [[String]] = [
        ["call", "counter", "increment()"], ["observe", "counter", "observeState"],
        ["observe", "counter", "observeState", "--filter", #"{"where":{"path":"/count","op":"gt","value":10}}"#],
        ["sign-in"], ["sign-in", "--email", "ada@example.org"], ["sign-out"], ["sessions"], ["sessions", "end", "1"],
        ["sessions", "end-others"], ["account", "delete", "--yes"], ["account", "change-email", "ada@example.org"],
        ["topic", "publish", "chat", "lobby", "emoji", "{}"], ["topic", "subscribe", "chat", "lobby", "emoji"],
        ["presence", "join", "chat", "lobby"], ["collection", "list", "todos"],
        ["collection", "list", "todos", "--count"],
        ["collection", "get", "todos"], ["collection", "watch", "todos"], ["collection", "create", "todos", "{}"],
        ["collection", "update", "todos", "1", "{}"], ["collection", "update", "todos", "1", "{}", "--merge"],
        ["collection", "increment", "todos", "1", "likes"], ["collection", "link", "todos", "1", "tags", "1"],
        ["collection", "unlink", "todos", "1", "tags", "1"], ["collection", "expire", "todos", "1", "5"],
        ["collection", "delete", "todos", "1"],
    ]

    @Test("a server that accepts the connection and stays silent ends every command in time", arguments: remote)
    func silent(command: [String]) async throws {
        let server = try SilentListener()
        let done = try await run(command + ["--url", "ws://\(server.address)", "--timeout", "0.2"])
        #expect(done.status == 1)
        #expect(
            done.error.hasSuffix(
                ": no connection to \(server.address) within 0.2 s; --timeout sets the maximum time\n"),
            "\(done.error)")
    }

    @Test("a silent coordination store, inspector or admin socket ends every command in time")
    func silentOthers() async throws {
        let server = try SilentListener()
        let path = NSTemporaryDirectory() + "t-\(UInt32.random(in: 0 ..< .max)).sock"
        defer { unlink(path) }
        let socket = try SilentListener(path: path)
        let engine = ["--cluster", "redis://\(server.address)"]
        let inspector = ["--url", "http://\(server.address)/#token=t"]
        let admin = ["--admin-socket", socket.address]
        for command in [
            ["cluster", "status"] + engine, ["cluster", "owner", "a"] + engine,
            ["cluster", "drain", "--timeout", "1", "a"] + engine,
            ["inspect", "overview"] + inspector, ["inspect", "actors"] + inspector,
            ["inspect", "calls", "--follow"] + inspector,
            ["inspect", "logs", "--follow"] + inspector, ["top"] + inspector, ["top", "--once"] + inspector,
            ["admin", "collections"] + admin, ["admin", "rooms"] + admin, ["admin", "export"] + admin,
            ["admin", "remove-account", "--yes", "a"] + admin,
        ] {
            let done = try await run(command.contains("--timeout") ? command : command + ["--timeout", "0.2"])
            #expect(done.status == 1, "\(command): \(done)")
            #expect(
                done.error.contains("sets the maximum time") || done.error.contains(/in time|timed out/),
                "\(command): \(done)")
        }
    }

    @Test("a server that refuses ends every command with the reason", arguments: remote)
    func refused(command: [String]) async throws {
        var access = AccessPolicy.open
        access.identifiesCallers = true
        access.authorize = { _, _, _ in false }
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), access: access, log: nil)
        let address = try await server.start()
        let done = try await run(command + ["--url", "ws://\(address)", "--timeout", "3"])
        await server.shutdown(drain: .zero)
        #expect(done.status == 1 && !done.error.isEmpty, "\(done)")
    }
}

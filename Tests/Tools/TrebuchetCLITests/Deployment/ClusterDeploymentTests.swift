import Foundation
import FoundationNetworking
import Glibc
import TestSupport
import Testing

/// `docker-compose.yml`, and `scripts/cluster`, which runs the same nodes as processes.
@Suite(.timeLimit(.minutes(5))) struct ClusterDeploymentTests {
    private static let compose = "/usr/bin/docker-compose"
    private static let root = packageRoot

    private struct Status: Decodable {
        struct Node: Decodable {
            let name: String
            let process: Int?
            let state: String
        }

        let nodes: [Node]
        let owners: [String: String]
    }

    /// The option names in a command line, except those of the admin endpoint, which the processes do not use, and of the coordination
    /// store, which the containers have in a variable.
    private func options(_ words: some Sequence<Substring>) -> [Substring] {
        words.filter { $0.hasPrefix("--") && !$0.hasPrefix("--admin") && $0 != "--cluster" }
    }

    private func trebuchet(_ arguments: String...) async throws -> ChildProcess.Outcome {
        try await trebuchet(arguments)
    }

    private func trebuchet(_ arguments: [String]) async throws -> ChildProcess.Outcome {
        try await ChildProcess(ServeProcess.tool, arguments, error: .merged).finish()
    }

    private func status(_ port: Int, _ names: String = "") async throws -> Status {
        let url = try #require(URL(string: "http://localhost:\(port)/control/status?\(names)"))
        return try JSONDecoder().decode(Status.self, from: try await URLSession.shared.data(from: url).0)
    }

    /// The `command: …` lines of the file as docker-compose reads it.
    private func composed() async throws -> ChildProcess.Outcome {
        let file = Self.root.appending(path: "docker-compose.yml").path
        return try await ChildProcess(Self.compose, ["-f", file, "config"], error: .merged).finish()
    }

    @Test(
        "docker-compose reads docker-compose.yml, with three nodes of one coordination store behind nginx",
        .enabled(if: access(compose, X_OK) == 0, "there is no docker-compose: apt-get install docker-compose"))
    func config() async throws {
        let outcome = try await composed()
        #expect(outcome.status == 0, "\(outcome.output)")
        // Long lines are wrapped.
        let text = outcome.output.replacingOccurrences(of: "\n      ", with: " ")
        for node in ["one", "two", "three"] { #expect(text.contains("--node \(node) ")) }
        #expect(text.contains("condition: service_healthy"))
        #expect(
            text.matches(of: /--admin 0\.0\.0\.0:9464 --admin-tls-cert \S+ --admin-tls-key \S+ --admin-token-file/)
                .count == 3)
        let proxy = try #require(text.firstMatch(of: /nginx:(?s).*?ipv4_address: ([0-9.]+)/)?.1)
        #expect(text.contains("--trusted-proxies \(proxy)"))
    }

    @Test(
        "scripts/cluster runs the nodes of docker-compose.yml: nginx forwards calls to any node, and a drained node leaves",
        .enabled(
            if: NginxProcess.program != nil && access("/usr/bin/redis-server", X_OK) == 0,
            "there is no nginx or no redis-server: scripts/bootstrap --proxy --redis"))
    func processes() async throws {
        let port = freePorts(1)[0]
        let script = Self.root.appending(path: "scripts/cluster").path
        let cluster = try ChildProcess(
            "/usr/bin/env", ["TREBUCHET=\(ServeProcess.tool)", script, "--port", "\(port)"], error: .merged)
        #expect(await cluster.nextLine() == "cluster: open http://localhost:\(port)")
        let second = await cluster.nextLine() ?? ""
        let engine = String(try #require(second.firstMatch(of: /redis:\/\/127.0.0.1:\d+/)?.0))

        for count in 1...3 {
            let call = try await trebuchet("call", "--url", "ws://127.0.0.1:\(port)", "counters/a", "add(_:)", "1")
            #expect(call.output == "\(count)\n")
        }
        // The nodes balance the slots in small steps: the owner may be changing.
        var owner = ""
        let isReported = try await eventually {
            owner = try await status(port, "counters/a").owners["counters/a"] ?? "nobody"
            return try await trebuchet("cluster", "owner", "counters/a", "--cluster", engine).output
                == "counters/a  \(owner)\n"
        }
        #expect(isReported)
        var listed = ""
        let isShared = try await eventually {
            let outcome = try await trebuchet("cluster", "status", "--cluster", engine)
            listed = outcome.output
            let slots = listed.matches(of: /(one|two|three)  (\d+) slots/).compactMap { Int($0.2) }
            return outcome.status == 0 && slots.count == 3 && slots.reduce(0, +) == 1_024 && !slots.contains(0)
        }
        #expect(isShared, "\(listed)")

        let file = try String(contentsOf: Self.root.appending(path: "docker-compose.yml"), encoding: .utf8)
        let commands = file.split(separator: "\n").filter { $0.contains("command: serve ") }.map {
            $0.split(separator: " ")
        }
        #expect(commands.count == 3)
        for node in try await status(port).nodes {
            let bytes = try Data(contentsOf: URL(filePath: "/proc/\(try #require(node.process))/cmdline"))
            let words = String(decoding: bytes, as: UTF8.self).split(separator: "\0")
            for command in commands { #expect(options(command) == options(words)) }
        }

        let drained = try await trebuchet("cluster", "drain", owner, "--cluster", engine)
        #expect(
            drained.output.hasSuffix("\(owner) has moved its slots and left the cluster\n"))
        let call = try await trebuchet("call", "--url", "ws://127.0.0.1:\(port)", "counters/a", "add(_:)", "1")
        #expect(call.output == "4\n")
        #expect(await eventually { (try? await status(port))?.nodes.first { $0.name == owner }?.process == nil })

        cluster.signal(SIGTERM)
        #expect(await cluster.finish().status == 0)
    }

    @Test(
        "a node that starts before its coordination store waits for it",
        .enabled(if: access("/usr/bin/redis-server", X_OK) == 0, "there is no redis-server: scripts/bootstrap --redis"))
    func startBeforeStore() async throws {
        let port = freePorts(1)[0]
        let folder = FileManager.default.temporaryDirectory.appending(path: "trebuchet-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let node = try ChildProcess(
            ServeProcess.tool,
            ["serve", "--port", "0", "--cluster", "redis://127.0.0.1:\(port)", "--node", "a", "--cluster-wait", "600"],
            error: .merged)
        let waiting = await node.nextLine() ?? ""
        #expect(waiting.contains("waiting up to 600.0 seconds for the coordination store: "), "\(waiting)")
        let script =
            "redis-server --port \(port) --bind 127.0.0.1 --dir \(folder.path) --appendonly yes & cat >/dev/null; kill -KILL $!"
        let store = try ChildProcess("/bin/sh", ["-c", script], error: .merged)
        var lines: [String] = []
        while let line = await node.nextLine(), !line.contains("trebuchet serves") { lines.append(line) }
        node.signal(SIGTERM)
        let outcome = await node.finish()
        #expect(outcome.status == 0, "\(lines) \(outcome.output)")
        _ = await store.finish()
    }

    @Test("a start that waits for no coordination store ends with the remedy, and one that waits ends at a signal")
    func startWithoutStore() async throws {
        let arguments = ["serve", "--port", "0", "--cluster", "redis://127.0.0.1:\(freePorts(1)[0])", "--node", "a"]
        let outcome = try await trebuchet(arguments + ["--cluster-wait", "0"])
        #expect(outcome.status != 0 && outcome.output.contains("start it, or pass the URL of another with --cluster"))
        let waiting = try ChildProcess(ServeProcess.tool, arguments, error: .merged)
        #expect(await waiting.nextLine()?.contains("waiting up to 30.0 seconds") == true)
        waiting.signal(SIGTERM)
        #expect(await waiting.finish().status == 0)
    }

    @Test("scripts/cluster accepts commands only from pages of this machine")
    func refusals() async throws {
        let port = freePorts(1)[0]
        let folder = Self.root.appending(path: "Examples/cluster").path
        let program = """
            import sys
            sys.path.insert(0, "\(folder)")
            import cluster
            class Asked(cluster.Control):
                def __init__(self, **headers): self.headers = headers
            class Options: port = \(port)
            cluster.Control.cluster = type("C", (), {"options": Options})
            for headers in ({"Host": "localhost:\(port)"}, {"Host": "127.0.0.1:\(port)", "Origin": "http://127.0.0.1:\(port)"},
                            {"Host": "localhost:\(port)", "Origin": "http://evil.example"}, {"Host": "evil.example:\(port)"},
                            {"Host": "localhost:\(port)", "Origin": "null"}, {}):
                print(Asked(**headers).is_allowed())
            """
        let outcome = try await ChildProcess("/usr/bin/env", ["python3", "-B", "-c", program], error: .merged).finish()
        #expect(outcome.output == "True\nTrue\nFalse\nFalse\nFalse\nFalse\n")
    }
}

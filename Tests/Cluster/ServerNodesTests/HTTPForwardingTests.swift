import NodeSupport
import TestSupport
import Testing
import Trebuchet
import TrebuchetCluster

/// Calls over HTTP to actors of other nodes.
@Suite(.timeLimit(.minutes(5))) struct HTTPForwardingTests {
    private static var access: AccessPolicy {
        var access = AccessPolicy(authenticate: AccessPolicy.apiKeys(["key": Principal(id: "ada")]))
        access.acceptsHTTPCalls = true
        return access
    }

    /// The body of a response and its status.
    private func call(_ node: Node, _ actor: String, _ method: String, _ body: String, key: String? = nil) async throws
        -> String
    {
        let more = key.map { ["-H", "Idempotency-Key: \($0)"] } ?? []
        return try await ChildProcess(
            "/usr/bin/curl",
            [
                "-sS", "-m", "60", "-w", " %{http_code}", "-H", "X-API-Key: key", "--json", body,
                "http://\(node.address.host):\(node.address.port)/call/\(actor)/\(method)",
            ] + more, error: .merged
        ).finish().output
    }

    @Test("a call reaches the owner of its actor, as its caller, and errors come back")
    func forwarded() async throws {
        try await withNodes(["a", "b"], access: Self.access) { nodes in
            for name in nodes[0].names(1) + nodes[1].names(1) {
                #expect(try await call(nodes[0], name, "add(_:)", "[2]") == "2 200")
                #expect(try await call(nodes[1], name, "add(_:)", "[3]") == "5 200")
                #expect(try await call(nodes[0], name, "caller()", "[]") == "\"ada\" 200")
                #expect(try await call(nodes[0], name, "revoke()", "[]") == " 204")
                let refused = try await call(nodes[0], name, "refuse()", "[]")
                #expect(refused.contains("not you") && refused.hasSuffix(" 403"), "\(refused)")
                let missing = try await call(nodes[0], name, "nothing()", "[]")
                #expect(missing.contains("methodNotFound") && missing.hasSuffix(" 404"), "\(missing)")
            }
        }
    }

    /// The first lines of a stream. The reader does not wait for the end of curl.
    private func observe(_ node: Node, _ actor: String, lines: Int, after id: String = "") async throws -> [String] {
        let address = try node.address
        let url = "http://\(address.host):\(address.port)/observe/\(actor)/count"
        let curl = "curl -sN -H 'X-API-Key: key' -H 'Last-Event-ID: \(id)' '\(url)' 2>/dev/null"
        let output = try await ChildProcess(
            "/bin/bash", ["-c", "head -n \(lines) < <(\(curl))"], error: .merged
        ).finish().output
        return output.split(separator: "\n").map(String.init)
    }

    @Test("a stream of an actor of another node is observed and resumed at each node")
    func streams() async throws {
        try await withNodes(["a", "b"], access: Self.access) { nodes in
            for name in nodes[0].names(1) + nodes[1].names(1) {
                var last = ""
                for (value, node) in (nodes + nodes).enumerated() {
                    let lines = try await observe(node, name, lines: 2, after: last)
                    #expect(lines.last == "data: \(value)", "\(lines)")
                    let id = try #require(lines.first)
                    #expect(id.hasPrefix("id: ") && id.dropFirst(4) != last)
                    last = String(id.dropFirst(4))
                    #expect(try await call(nodes[0], name, "add(_:)", "[1]") == "\(value + 1) 200")
                }
            }
        }
    }

    @Test("a key is the same at each node, also after another node owns the actor")
    func keys() async throws {
        let engine = MemoryEngine()
        try await withNodes(["a", "b"], engine: engine, access: Self.access) { nodes in
            let names = nodes[0].names(2) + nodes[1].names(2)
            for name in names {
                for node in nodes + nodes {
                    #expect(try await call(node, name, "addOnce(_:)", "[5]", key: "one \(name)") == "5 200")
                }
                let other = try await call(nodes[0], name, "addOnce(_:)", "[6]", key: "one \(name)")
                #expect(other.contains("other arguments") && other.hasSuffix(" 400"), "\(other)")
                let refused = try await call(nodes[0], name, "add(_:)", "[6]", key: "two \(name)")
                #expect(refused.contains("not marked @Idempotent") && refused.hasSuffix(" 400"), "\(refused)")
            }
            await nodes[1].server.shutdown()
            for name in names {
                #expect(try await call(nodes[0], name, "addOnce(_:)", "[5]", key: "one \(name)") == "5 200")
                #expect(try await call(nodes[0], name, "addOnce(_:)", "[5]", key: "two \(name)") == "10 200")
            }
        }
    }
}

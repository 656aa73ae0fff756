import TestSupport
import Testing
import Trebuchet

@testable import TrebuchetCLI

/// The limits of the actors of `serve --examples`.
@Suite(.timeLimit(.minutes(5))) struct ExampleActorTests {
    @Test("no client grows or ends the example actors: they have limits, and their numbers wrap around")
    func exampleLimits() async throws {
        let server = try await ServeProcess()
        func call(_ words: String...) async throws -> ChildProcess.Outcome {
            try await ChildProcess(ServeProcess.tool, ["call", "--url", server.url] + words, error: .captured).finish()
        }
        #expect(try await call("counter", "add(_:)", "\(Int.max)").output == "\(Int.max)\n")
        #expect(try await call("counter", "increment()").output == "\(Int.min)\n")
        let long = String(repeating: "é", count: 65)
        for (actor, method) in [("todos", "addTodo(title:)"), ("game", "join(player:)")] {
            #expect(try await call(actor, method, "\"\(long.dropLast())\"").status == 0)
            for text in ["\"\(long)\"", "\"\"", #""a\u001bb""#] {
                let refused = try await call(actor, method, text)
                #expect(refused.status == 1, "\(text)")
                #expect(refused.error.contains("has 1 to 128 bytes and no control characters"), "\(refused.error)")
            }
        }
        // A connection may change the list of to-dos 100 times at once.
        var clients: [TrebuchetClient] = []
        for _ in 0..<10 {
            let client = TrebuchetClient(transport: .webSocket(url: server.url))
            try await client.connect()
            clients.append(client)
        }
        for (actor, method, advice) in [
            ("todos", "addTodo(title:)", "there are 1000 items, the maximum; remove one with removeTodo(id:)"),
            ("game", "join(player:)", "there are 1000 players, the maximum; join with one of their names"),
        ] {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 1..<1_000 {
                    group.addTask { [client = clients[number % 10]] in
                        _ = try await client.call(
                            actor: actor, target: method, arguments: [Array("\"\(number)\"".utf8)])
                    }
                }
                try await group.waitForAll()
            }
            let refused = try await call(actor, method, "\"one more\"")
            #expect(refused.status == 1 && refused.error.contains(advice), "\(refused.error)")
        }
        var messages: Set<String> = []
        for _ in 0..<200 {
            do {
                _ = try await clients[0].call(
                    actor: "todos", target: "addTodo(title:)", arguments: [Array("\"a\"".utf8)])
            } catch let error as TrebuchetError {
                messages.insert(error.message)
            }
        }
        #expect(messages.contains { $0.hasPrefix("too many calls of addTodo(title:)") }, "\(messages)")
        for client in clients { await client.close() }
        #expect(await server.stop() == 0)
    }

    @Test("a quota of names accepts the names that it has, and no new ones at its limit")
    func nameQuota() throws {
        let quota = NameQuota(limit: 2)
        try quota.add("counters/a")
        try quota.add("counters/b")
        try quota.add("counters/a")
        let error = #expect(throws: TrebuchetError.self) { try quota.add("counters/c") }
        #expect(error?.code == .rateLimited && error?.message.contains("has 2 names") == true)
    }

    @Test("a host and a network of hosts use a part of the names")
    func nameQuotaOfHosts() throws {
        let quota = NameQuota(limit: 640)
        func count(_ host: String) throws -> Int {
            let host = try #require(CallerHost(address: host))
            return (0..<100).count { (try? quota.add("\(host.number)-\($0)", of: host)) != nil }
        }
        #expect(try count("192.0.2.1") == 10)
        #expect(try count("192.0.2.2") == 10)
        let networks = try (0..<8).map { try count("2001:db8:0:\($0)::1") }
        #expect(networks == [10, 10, 10, 10, 0, 0, 0, 0])
        #expect((0..<1_000).count { (try? quota.add("local-\($0)", of: nil)) != nil } == 580)
    }
}

import Glibc
import Platform
import Synchronization
import TestSupport
import Testing
import Trebuchet

/// The methods of the demo actor of `trebuchet serve` that this test calls.
@Trebuchet
private distributed actor TodoList {
    struct Item: Codable, Sendable { var title: String }
    struct State: Codable, Sendable { var todos: [Item] = [] }

    @StreamedState var state: State = State()

    distributed func addTodo(title: String) -> Item { Item(title: title) }
}

/// Records the acknowledged calls.
private final class Titles: Sendable {
    private let titles = Mutex<Set<String>>([])

    var all: Set<String> { titles.withLock { $0 } }
    func insert(_ title: String) { titles.withLock { _ = $0.insert(title) } }
}

/// A real server is killed with `SIGKILL` while many clients write.
@Suite(.serialized, .timeLimit(.minutes(5))) struct KillTests {
    @Test("kill -9 under load loses no acknowledged write", arguments: 1...3 as ClosedRange<UInt64>)
    func kill(seed: UInt64) async throws {
        let folder = try TemporaryFolder()
        var random = RandomSource(seed: seed)
        let acknowledged = Titles()
        for round in 0..<3 {
            let server = try await ServeProcess(arguments: ["--data", folder.file(), "--reactors", "2"])
            try await expectAll(acknowledged.all, at: server.url, "seed \(seed), round \(round)")
            let enough = acknowledged.all.count + Int.random(in: 50...150, using: &random)
            let port = try #require(Int(server.url.split(separator: ":").last ?? ""))
            await withTaskGroup(of: Void.self) { group in
                for connection in 0..<6 {
                    group.addTask {
                        await Self.write(to: port, "\(round)-\(connection)", acknowledged)
                    }
                }
                #expect(await eventually { acknowledged.all.count >= enough })
                await server.kill()
            }
        }
        let server = try await ServeProcess(arguments: ["--data", folder.file()])
        try await expectAll(acknowledged.all, at: server.url, "seed \(seed), at the end")
        #expect(await server.stop() == 0)
    }

    /// Writes from four callers on one connection, until it breaks.
    private static func write(to port: Int, _ name: String, _ acknowledged: Titles) async {
        var options = TrebuchetClient.Options()
        options.reconnect = .never
        let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: port), options: options)
        guard (try? await client.connect()) != nil, let list = try? client.resolve(TodoList.self, id: "todos") else {
            return
        }
        await withTaskGroup(of: Void.self) { group in
            for caller in 0..<4 {
                group.addTask {
                    var number = 0
                    while true {
                        let title = "\(name)-\(caller)-\(number)"
                        guard (try? await list.addTodo(title: title)) != nil else { return }
                        acknowledged.insert(title)
                        number += 1
                    }
                }
            }
        }
        await client.close()
    }

    private func expectAll(_ titles: Set<String>, at url: String, _ when: String) async throws {
        let port = try #require(Int(url.split(separator: ":").last ?? ""))
        let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: port))
        try await client.connect()
        let list = try client.resolve(TodoList.self, id: "todos")
        let state = try #require(await list.observeState().first { _ in true })
        await client.close()
        let found = state.todos.map(\.title)
        #expect(Set(found).isSuperset(of: titles), "\(when): lost \(titles.subtracting(found))")
        #expect(Set(found).count == found.count, "\(when): a title is stored twice")
    }
}

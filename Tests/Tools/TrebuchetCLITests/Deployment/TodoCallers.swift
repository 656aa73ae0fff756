import Foundation
import Synchronization
import Trebuchet

/// Clients that add todos in sequence until they are stopped, each with a unique title.
final class TodoCallers: Sendable {
    private struct State {
        var isStopping = false
        var answered: Set<String> = []
        var failures: [String] = []
        var last = 0
    }

    private let state = Mutex(State())

    var failures: [String] { state.withLock { $0.failures } }
    var answered: Set<String> { state.withLock { $0.answered } }
    func stop() { state.withLock { $0.isStopping = true } }

    /// Calls of the counter after each todo, as the list has at most 1,000 items.
    private static let callsBetween = 100
    /// The title of the last todo.
    private static let end = "end"

    func run(_ client: TrebuchetClient, count: Int) async {
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<count { group.addTask { await self.call(client) } }
        }
        await add(Self.end, client)
    }

    private func call(_ client: TrebuchetClient) async {
        while true {
            let next: String? = state.withLock { state in
                guard !state.isStopping else { return nil }
                state.last += 1
                return "n\(state.last)"
            }
            guard let next else { return }
            await add(next, client)
            for _ in 0..<Self.callsBetween where !state.withLock({ $0.isStopping }) { await count(client) }
        }
    }

    private func count(_ client: TrebuchetClient) async {
        do {
            _ = try await client.call(actor: "counters/beside", target: "add(_:)", arguments: [Array("1".utf8)])
        } catch {
            state.withLock { $0.failures.append("add: \(error)") }
        }
    }

    private func add(_ title: String, _ client: TrebuchetClient) async {
        do {
            _ = try await client.call(
                actor: "todos", target: "addTodo(title:)", arguments: [Array("\"\(title)\"".utf8)])
            state.withLock { _ = $0.answered.insert(title) }
        } catch {
            state.withLock { $0.failures.append("\(title): \(error)") }
        }
    }

    /// Reads the state until it has the last todo, and returns the titles at that point.
    func observe(_ client: TrebuchetClient) async throws -> Set<String> {
        var seen: Set<String> = []
        for try await value in client.observe(actor: "todos", stream: "observeState") {
            seen = Set(Self.titles(value))
            if seen.contains(Self.end) { break }
        }
        return seen
    }

    /// The titles in a state, sorted.
    static func titles(_ state: [UInt8]) -> [String] {
        struct Todos: Decodable {
            struct Item: Decodable { let title: String }
            let todos: [Item]
        }
        return (try? JSONDecoder().decode(Todos.self, from: Data(state)))?.todos.map(\.title).sorted() ?? []
    }
}

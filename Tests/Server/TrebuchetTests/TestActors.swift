import TestSupport
import Trebuchet

/// Methods of every shape.
@Trebuchet
distributed actor Calculator {
    distributed func nothing() {}
    distributed func nothingLater() async {}
    distributed func runsInTask() -> Bool { withUnsafeCurrentTask { $0 != nil } }
    distributed func zero() -> Int { 0 }
    distributed func same(_ number: Int) -> Int { number }
    distributed func join(_ a: Int, b: Double, text: String, _ flag: Bool, list: [Int]?) -> String {
        "\(a) \(b) \(text) \(flag) \(list.map { "\($0)" } ?? "none")"
    }
    distributed func joinLater(_ a: Int, text: String) async -> String {
        await Task.yield()
        return "\(a) \(text)"
    }
    distributed func add(_ a: Int, to b: Int = 10) -> Int { a + b }
    distributed func half(_ number: Int?) -> Int? { number.flatMap { $0.isMultiple(of: 2) ? $0 / 2 : nil } }
    distributed var answer: Int { 42 }
    distributed func echo<Value: Codable & Sendable>(_ value: Value) -> Value { value }
    distributed func pairLater<A: Codable & Sendable, B: Codable & Sendable>(_ a: A, _ b: B) async -> Pair<A, B> {
        Pair(first: a, second: b)
    }
}

struct Pair<A: Codable & Sendable, B: Codable & Sendable>: Codable, Sendable {
    var first: A
    var second: B
}

extension Pair: Equatable where A: Equatable, B: Equatable {}

enum BankError: Error, Codable, Equatable { case insufficient(missing: Int) }
struct Closed: Error, Codable, Equatable { var reason: String }
struct Secret: Error { var detail = "42" }

/// Methods that throw.
@Trebuchet
distributed actor Bank {
    distributed func withdraw(_ amount: Int) throws(BankError) -> Int {
        guard amount <= 100 else { throw .insufficient(missing: amount - 100) }
        return 100 - amount
    }
    distributed func withdrawLater(_ amount: Int) async throws(BankError) -> Int {
        await Task.yield()
        return try withdraw(amount)
    }
    distributed func close() throws { throw Closed(reason: "holiday") }
    distributed func explode() async throws { throw Secret() }
}

struct ListState: Codable, Sendable, Equatable {
    var items: [String] = []
}

@Resolvable
protocol TodoListing: DistributedActor where ActorSystem == TrebuchetActorSystem {
    distributed func add(title: String) -> Int
}

extension TodoListing {
    nonisolated var observeState: StateObservation<Self, ListState> { observation("observeState") }
}

@Trebuchet
distributed actor TodoList: TodoListing {
    @StreamedState var state: ListState = ListState()

    distributed func add(title: String) -> Int {
        state.items.append(title)
        return state.items.count
    }
    distributed func addLater(title: String) async -> Int {
        await Task.yield()
        return add(title: title)
    }
    /// Makes many changes in one call.
    distributed func fill(_ count: Int) {
        for index in 0..<count { state.items.append("\(index)") }
    }
}

/// Returns and receives actors.
@Trebuchet
distributed actor Registry {
    private var lists: [TodoList] = []

    distributed func make() -> TodoList {
        let list = TodoList(actorSystem: actorSystem)
        lists.append(list)
        return list
    }
    distributed func fill(_ list: TodoList, title: String) async throws -> Int { try await list.add(title: title) }
    distributed func isOurs(_ list: TodoList) -> Bool { lists.contains { $0 === list } }
}

/// Records the start of its methods and waits for the test's signal.
@Trebuchet
distributed actor Waiter {
    private let journal: Journal

    init(journal: Journal, actorSystem: TrebuchetActorSystem) {
        self.journal = journal
        self.actorSystem = actorSystem
    }

    distributed func now(_ number: Int) { journal.record("\(number)") }
    distributed func later(_ number: Int) async {
        journal.record("\(number)")
        await Task.yield()
    }
    /// Ignores its cancellation.
    distributed func insist(_ name: String) async -> String {
        let journal = journal
        journal.record("\(name) began")
        await Task.detached { await journal.wait(for: "\(name) go") }.value
        return "went on"
    }
    distributed func hold(_ name: String) async -> String {
        journal.record("\(name) began")
        await journal.wait(for: "\(name) go")
        let outcome = Task.isCancelled ? "was cancelled" : "went on"
        journal.record("\(name) \(outcome)")
        return outcome
    }
}

/// `Waiter` on Swift's global pool.
@Trebuchet(executor: .concurrent)
distributed actor ConcurrentList {
    @StreamedState var state: ListState = ListState()

    distributed func add(title: String) -> Int {
        state.items.append(title)
        return state.items.count
    }
    distributed func addLater(title: String) async -> Int { add(title: title) }
    distributed func items() -> [String] { state.items }
}

/// An actor without the macros.
distributed actor Plain {
    typealias ActorSystem = TrebuchetActorSystem

    distributed func nothing() {}
}

/// A state that gets its initial value in a synchronous initializer.
@Trebuchet
distributed actor Thermometer {
    @StreamedState var degrees: Double

    init(_ degrees: Double, actorSystem: TrebuchetActorSystem) {
        self.actorSystem = actorSystem
        self.degrees = degrees
    }

    distributed func warm(by degrees: Double) { self.degrees += degrees }
}

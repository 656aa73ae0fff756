import TestSupport
import Trebuchet

/// Works with actors of other nodes.
@Trebuchet
distributed actor CrossNodeCaller {
    private var held: Tally?

    /// Adds to each of so many tallies, and says what they have come to.
    distributed func count(_ names: [String]) async throws -> Int {
        var sum = 0
        for name in names { sum += try await actorSystem.resolve(Tally.self, id: name).add(1) }
        return sum
    }
    distributed func addOnce(_ name: String, _ number: Int) async throws -> Int {
        try await actorSystem.resolve(Tally.self, id: name).addOnce(number)
    }
    /// Calls, without waiting for one answer before the next call, and says whether they came in order.
    distributed func follow(_ name: String, _ calls: Int) async throws -> Bool {
        let tally = try actorSystem.resolve(Tally.self, id: name)
        return try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 1...calls {
                group.addImmediateTask { try await tally.follow(number) }
            }
            return try await group.allSatisfy { $0 }
        }
    }
    /// Whom an actor takes for its caller, when this one calls.
    distributed func name(to name: String) async throws -> String {
        try await actorSystem.resolve(Tally.self, id: name).caller()
    }
    /// Has an actor sign the caller in and out, and says what others take this one for then.
    distributed func mislead(_ name: String, _ other: String) async throws -> [String] {
        let (tally, next) = (
            try actorSystem.resolve(Tally.self, id: name), try actorSystem.resolve(Tally.self, id: other)
        )
        try await tally.claim("mallory")
        var seen = [try await tally.caller(), try await next.caller()]
        try await tally.revoke()
        seen += [try await tally.caller(), try await next.caller(), "\(try await tally.handlers())"]
        return seen
    }
    /// The same of one that it was given.
    distributed func name(of tally: Tally) async throws -> String { try await tally.caller() }
    /// Observes an actor until it has counted to a number, having had something added first.
    distributed func watch(_ name: String, until last: Int) async throws -> [Int] {
        let tally = try actorSystem.resolve(Tally.self, id: name)
        var seen: [Int] = []
        for await count in await tally.observeCount() {
            seen.append(count)
            if count >= last { break }
            _ = try await tally.add(1)
        }
        return seen
    }
    /// Keeps a reference.
    distributed func hold(_ name: String) throws { held = try actorSystem.resolve(Tally.self, id: name) }
    distributed func addToHeld(_ number: Int) async throws -> Int { try await held?.addOnce(number) ?? -1 }
    /// So many streams at once, each of an actor of its own.
    distributed func watchAll(_ names: [String]) async throws -> Int {
        var streams: [StateStream<Int>.Iterator] = []
        var seen = 0
        for name in names {
            let tally = try actorSystem.resolve(Tally.self, id: name)
            var stream = await tally.observeCount().makeAsyncIterator()
            if await stream.next() != nil { seen += 1 }
            streams.append(stream)
        }
        return seen
    }
    /// Calls this very actor by its name.
    distributed func again(_ name: String, _ depth: Int) async throws -> Int {
        guard depth > 0 else { return 0 }
        return try await actorSystem.resolve(CrossNodeCaller.self, id: name).again(name, depth - 1) + 1
    }
}

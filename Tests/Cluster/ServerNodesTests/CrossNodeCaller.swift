import TestSupport
import Trebuchet

/// Calls actors of other nodes.
@Trebuchet
distributed actor CrossNodeCaller {
    private var storedTally: Tally?

    /// Adds one to each of the tallies, and returns the sum of their values.
    distributed func count(_ names: [String]) async throws -> Int {
        var sum = 0
        for name in names { sum += try await actorSystem.resolve(Tally.self, id: name).add(1) }
        return sum
    }
    distributed func addOnce(_ name: String, _ number: Int) async throws -> Int {
        try await actorSystem.resolve(Tally.self, id: name).addOnce(number)
    }
    /// Sends calls without waiting for responses, and returns whether they arrived in order.
    distributed func follow(_ name: String, _ calls: Int) async throws -> Bool {
        let tally = try actorSystem.resolve(Tally.self, id: name)
        return try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 1...calls {
                group.addImmediateTask { try await tally.follow(number) }
            }
            return try await group.allSatisfy { $0 }
        }
    }
    /// The caller that an actor sees when this actor calls it.
    distributed func name(to name: String) async throws -> String {
        try await actorSystem.resolve(Tally.self, id: name).caller()
    }
    /// Makes an actor sign the caller in and out, and returns the callers that other actors see then.
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
    /// The caller that a given actor sees.
    distributed func name(of tally: Tally) async throws -> String { try await tally.caller() }
    /// Observes an actor until its count reaches a number, adding one after each update.
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
    /// Stores a reference.
    distributed func hold(_ name: String) throws { storedTally = try actorSystem.resolve(Tally.self, id: name) }
    distributed func addToTally(_ number: Int) async throws -> Int { try await storedTally?.addOnce(number) ?? -1 }
    /// Observes several actors at once.
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
    /// Calls this actor by its name.
    distributed func again(_ name: String, _ depth: Int) async throws -> Int {
        guard depth > 0 else { return 0 }
        return try await actorSystem.resolve(CrossNodeCaller.self, id: name).again(name, depth - 1) + 1
    }
}

import Trebuchet

/// The interface of `counters/*`, which `trebuchet serve` hosts: a persisted number, each version of which is sent.
@Trebuchet
distributed actor Counter {
    @StreamedState(delivery: .every(), persisted: true) var count: Int = 0

    @Idempotent distributed func add(_ amount: Int) -> Int {
        count &+= amount
        return count
    }

    /// As many as there are games.
    static let all = 0..<GameServer.games
    /// The amount that is added at the end: readers stop at a number that contains it.
    static let end = 1_000_000_000

    static func name(_ number: Int) -> String { "counters/{judged-\(number)}" }

    /// Another counter in the slot of a judged one, for calls that only ask whether its node answers.
    static func nameBeside(_ number: Int) -> String { name(number) + "-asked" }
}

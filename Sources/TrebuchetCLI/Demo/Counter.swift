public import Trebuchet

/// `counter`: a number that everybody shares.
@Trebuchet
public distributed actor Counter {
    public struct State: Codable, Sendable, Equatable {
        public var count: Int

        public init(count: Int) { self.count = count }
    }

    @StreamedState public var state: State = State(count: 0)

    public distributed func increment() -> Int {
        state.count += 1
        return state.count
    }

    public distributed func add(_ amount: Int) -> Int {
        state.count &+= amount
        return state.count
    }

    public distributed func reset() { state.count = 0 }
}

/// `counters/*`: numbers that are kept, each of a name; in a cluster each lives on one of its nodes.
@Trebuchet
public distributed actor KeptCounter {
    @StreamedState(delivery: .every(), persisted: true) public var count: Int = 0

    /// The sum. A client that was cut off repeats it, and it is done once.
    @Idempotent public distributed func add(_ amount: Int) -> Int {
        count &+= amount
        return count
    }
}

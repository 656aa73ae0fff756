public import Trebuchet

/// `counter`: a number that all clients share.
@Trebuchet
public distributed actor Counter {
    /// The state that clients observe.
    public struct State: Codable, Sendable, Equatable {
        /// The current number.
        public var count: Int

        /// Creates a state with the given number.
        public init(count: Int) { self.count = count }
    }

    /// The observed state.
    @StreamedState public var state: State = State(count: 0)

    /// Adds one, with wraparound, and returns the new number.
    public distributed func increment() -> Int {
        state.count &+= 1
        return state.count
    }

    /// Adds an amount, with wraparound, and returns the new number.
    public distributed func add(_ amount: Int) -> Int {
        state.count &+= amount
        return state.count
    }

    /// Sets the number to 0.
    public distributed func reset() { state.count = 0 }
}

/// `counters/*`: persisted numbers by name; in a cluster each lives on one node.
@Trebuchet
public distributed actor PersistedCounter {
    @StreamedState(delivery: .every(), persisted: true) public var count: Int = 0

    /// Adds an amount, with wraparound, and returns the sum. A client that was disconnected repeats the call, and it is
    /// executed once.
    @Idempotent public distributed func add(_ amount: Int) -> Int {
        count &+= amount
        return count
    }
}

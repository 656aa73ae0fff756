public import Trebuchet

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

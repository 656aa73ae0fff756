public import Trebuchet

/// `meters/*`: the actors of `trebuchet bench takeover`, each on one node of a cluster.
@Trebuchet
public distributed actor Meter {
    @StreamedState(delivery: .every(), persisted: true) public var count: Int = 0

    public distributed func add(_ number: Int) -> Int {
        count &+= number
        return count
    }

    @Idempotent
    public distributed func addOnce(_ number: Int) -> Int {
        count &+= number
        return count
    }
}

public import Trebuchet

/// `meters/*`: what `trebuchet bench takeover` calls and observes; on one node each, when the server is one of several.
@Trebuchet
public distributed actor Meter {
    @StreamedState(delivery: .every(), persisted: true) public var count: Int = 0

    public distributed func add(_ number: Int) -> Int {
        count += number
        return count
    }

    @Idempotent
    public distributed func addOnce(_ number: Int) -> Int {
        count += number
        return count
    }
}

import Trebuchet

/// A number that is kept, for `trebuchet bench store`.
@Trebuchet
distributed actor Tally {
    @StreamedState(persisted: true) var count: Int = 0

    distributed func add(_ amount: Int) -> Int {
        count &+= amount
        return count
    }
}

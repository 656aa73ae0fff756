/// One input of a join: the value that counts, and those that waves have brought and not yet fired.
final class Slot<Value: Sendable>: JoinSlot, @unchecked Sendable {
    // Unchecked: both are touched only under the lock of the join that the slot belongs to.
    var value: Value?
    var pending: [(wave: Wave, value: Value)] = []

    struct IsEmpty: Error {}

    /// The value that counts; throws while there is none.
    func filled() throws(IsEmpty) -> Value {
        guard let value else { throw IsEmpty() }
        return value
    }

    func waveInFront(of wave: Wave) -> Wave? {
        guard let first = pending.first?.wave.root, first !== wave,
            pending.contains(where: { $0.wave.root === wave })
        else { return nil }
        return first
    }

    var firstWave: Wave? { pending.first?.wave }

    func position(of part: Wave) -> Int? { pending.firstIndex { $0.wave === part } }

    func countUpToLast(of wave: Wave) -> Int {
        pending.lastIndex { $0.wave.root === wave }.map { $0 + 1 } ?? 0
    }

    func advance() { value = pending.removeFirst().value }
}

/// A slot whatever its values are; everything is called under the lock of its join.
protocol JoinSlot: AnyObject, Sendable {
    /// The wave of the oldest value, if that is another and the given one has brought a value too.
    func waveInFront(of wave: Wave) -> Wave?
    /// The wave, or the part of one, that brought the oldest pending value.
    var firstWave: Wave? { get }
    /// The place of the first pending value that the part has brought.
    func position(of part: Wave) -> Int?
    /// How many values there are up to the wave's last.
    func countUpToLast(of wave: Wave) -> Int
    /// Makes the oldest pending value the one that counts.
    func advance()
}

/// One input of a join: the valid value, and the values of waves that have not fired.
final class JoinInput<Value: Sendable>: AnyJoinInput, @unchecked Sendable {
    // Unchecked: both are accessed only under the lock of the join that the slot belongs to.
    var value: Value?
    var pending: [(wave: Wave, value: Value)] = []

    /// The error of a slot without a value.
    struct IsEmpty: Error {}

    /// Returns the valid value. Throws while there is none.
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

/// A slot with any value type. All members are called under the lock of its join.
protocol AnyJoinInput: AnyObject, Sendable {
    /// Returns the wave of the oldest value, if that is another wave and the given one has brought a value too.
    func waveInFront(of wave: Wave) -> Wave?
    /// The wave, or part of a wave, that brought the oldest pending value.
    var firstWave: Wave? { get }
    /// Returns the position of the first pending value of the part.
    func position(of part: Wave) -> Int?
    /// Returns the number of values up to the last one of the wave.
    func countUpToLast(of wave: Wave) -> Int
    /// Makes the oldest pending value the valid one.
    func advance()
}

internal import Bytes

/// The last differences of a state, each from the version before: who has one of their bases needs no more than what
/// follows it.
///
/// Bounded: at most 64 of them, which is two turns' worth, and together smaller than the value itself.
struct PatchHistory: Sendable {
    static let longest = 64

    private var patches: [StateUpdate.Patch] = []
    private var bytes = 0

    /// Notes the newest update.
    mutating func remember(_ update: StateUpdate) {
        guard let patch = update.patch else { return forget() }
        if patches.last?.sequence != patch.base { forget() }
        patches.append(patch)
        bytes += patch.suffix.count
        var surplus = 0
        while patches.count - surplus > Self.longest || bytes > update.wholeByteCount {
            bytes -= patches[surplus].suffix.count
            surplus += 1
        }
        if surplus > 0 { patches.removeFirst(surplus) }
    }

    private mutating func forget() {
        patches.removeAll(keepingCapacity: true)
        bytes = 0
    }

    /// What leads from a version to the newest one; nil when that is out of reach.
    func patches(since sequence: UInt64) -> ArraySlice<StateUpdate.Patch>? {
        // Nearly everybody is one behind.
        if let last = patches.last, last.base == sequence { return patches.suffix(1) }
        return patches.firstIndex { $0.base == sequence }.map { patches[$0...] }
    }
}

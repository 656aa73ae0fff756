/// What was made of the versions of a persisted state since the last one that its store was given.
///
/// Bounded: beyond `mostBytes` the earlier ones are left out, the store is given the whole value, and who observes skips them.
struct UncapturedVersions {
    private static let mostBytes = 16 << 20

    /// Oldest first.
    private(set) var updates: [StateUpdate] = []
    /// The last version that the store was given.
    private(set) var base: UInt64 = 0
    private var bytes = 0

    /// Notes the newest version, or that it could not be made.
    mutating func append(_ event: StateEvent) {
        guard case .update(let update) = event else { return drop() }
        guard update.sequence > max(base, updates.last?.sequence ?? 0) else { return }
        // With what each costs beside its text.
        let added = update.storedBytes + 256
        if bytes + added > Self.mostBytes { drop() }
        updates.append(update)
        bytes += added
    }

    /// Begins anew behind a version, which the store has or was given.
    mutating func begin(after version: UInt64) {
        drop()
        base = version
    }

    private mutating func drop() {
        updates = []
        bytes = 0
    }

    /// What leads from `base` to a version, change by change; nil when that is not known.
    func patches(to version: UInt64) -> [StateUpdate.Patch]? {
        var last = base
        var patches: [StateUpdate.Patch] = []
        for update in updates {
            guard let patch = update.patch, patch.base == last else { return nil }
            patches.append(patch)
            last = patch.sequence
        }
        return last == version ? patches : nil
    }
}

internal import Platform

/// The recorded mutations of a collection's clients, which prevent a repeated execution, with those that are not in the store
/// yet. Pure.
///
/// Outcomes of mutations without changes are not written separately, and may be lost when the process ends.
struct ClientMutationLog: Sendable {
    /// The persistence of an outcome.
    enum Basis {
        /// It is written with the changes of the mutation.
        case written
        /// It is not written.
        case unwritten
        /// It is not written, and it may depend on changes that are not in the store.
        case uncertain
    }

    /// The number of clients that one command evicts when there are too many.
    private static let forgottenAtOnce = 64

    private var windows: [ByteText: MutationDeduplicationWindow]
    private var order = LRUOrder<ByteText>()
    /// The newest number of each client whose outcome is in the store.
    private var known: [ByteText: Int]
    /// The written state of clients with unwritten changes.
    private var before: [ByteText: MutationDeduplicationWindow?] = [:]
    private var unwritten: [ByteText: MutationDeduplicationWindow?] = [:]
    /// Clients with an outcome that was not written but depends on unwritten changes; the second set is that of the current
    /// batch.
    private var uncertain: Set<ByteText> = []
    private var uncertainInBatch: Set<ByteText> = []

    /// - Parameter windows: the contents of the store.
    init(_ windows: [ByteText: MutationDeduplicationWindow]) {
        self.windows = windows
        known = windows.mapValues(\.last)
        for (client, _) in windows.sorted(by: { $0.value.revision < $1.value.revision }) { order.markUsed(client) }
    }

    var count: Int { windows.count }
    var hasUnwritten: Bool { !unwritten.isEmpty }

    /// The written state of all clients. No written outcome is missing.
    var written: [ByteText: MutationDeduplicationWindow] {
        var written = windows
        for (client, window) in before { written[client] = window }
        return written
    }

    /// Returns the outcome of a repeated mutation; nil for a new one.
    func outcome(of mutation: DocumentMutation, by client: ByteText) -> MutationOutcome? {
        windows[client]?.outcome(of: mutation)
    }

    /// - Parameter most: the maximum number of clients.
    mutating func remember(
        _ outcome: MutationOutcome, of mutation: DocumentMutation, by client: ByteText, _ ground: Basis, most: Int
    ) {
        if ground == .uncertain { uncertain.insert(client) }
        if ground != .unwritten, before[client] == nil { before[client] = .some(windows[client]) }
        windows[client, default: MutationDeduplicationWindow()].remember(outcome, of: mutation)
        order.markUsed(client)
        if ground == .written { unwritten[client] = windows[client] }
        var count = 0
        while windows.count > max(1, most), count < Self.forgottenAtOnce, let forgotten = order.first {
            count += 1
            order.remove(forgotten)
            windows[forgotten] = nil
            known[forgotten] = nil
            unwritten[forgotten] = .some(nil)
        }
    }

    // MARK: Writing

    /// Returns all unwritten changes. Later changes of the same clients are part of the next batch.
    mutating func beginWrite() -> [ByteText: MutationWindowChange] {
        defer { unwritten = [:] }
        (uncertainInBatch, uncertain) = (uncertain, [])
        var changes: [ByteText: MutationWindowChange] = [:]
        for (client, window) in unwritten {
            changes[client] = MutationWindowChange(window: window, known: known[client])
        }
        return changes
    }

    /// Completes a batch that is in the store.
    mutating func endWrite(_ changes: [ByteText: MutationWindowChange]) {
        for (client, change) in changes {
            let isDone = unwritten[client] == nil && !uncertain.contains(client)
            before[client] = isDone ? nil : .some(change.window)
            // A client that was evicted meanwhile starts without a known number.
            if windows[client] != nil { known[client] = change.window?.last }
        }
        for client in uncertainInBatch where changes[client] == nil {
            if unwritten[client] == nil, !uncertain.contains(client) { before[client] = nil }
        }
        uncertainInBatch = []
    }

    /// Discards unwritten changes after a failed write.
    mutating func discardUnwritten() {
        for (client, window) in before {
            windows[client] = window
            if window == nil { order.remove(client) } else { order.markUsed(client) }
        }
        (unwritten, before) = ([:], [:])
        (uncertain, uncertainInBatch) = ([], [])
    }
}

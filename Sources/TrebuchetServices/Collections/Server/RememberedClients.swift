internal import Platform

/// What is remembered of a collection's clients, so that none of their mutations is done twice: what is written, and what is still to
/// be written. Pure.
///
/// Outcomes of mutations that changed nothing are not written for their own sake, and may be forgotten with the process.
struct RememberedClients: Sendable {
    /// What an outcome stands on.
    enum Ground {
        /// It is to be written with what the mutation has changed.
        case written
        /// It is not to be written.
        case unwritten
        /// The same, and it may have built on changes that are not in the store.
        case uncertain
    }

    /// Clients that are forgotten with one command, where more are remembered than may be.
    private static let forgottenAtOnce = 64

    private var windows: [ByteText: MutationWindow]
    private var order = LeastRecent<ByteText>()
    /// The newest number of each client whose outcome the store has.
    private var known: [ByteText: Int]
    /// As it was before what is not written, of the clients that have something like that.
    private var before: [ByteText: MutationWindow?] = [:]
    private var unwritten: [ByteText: MutationWindow?] = [:]
    /// Clients of which something is remembered that was not written but built on what is not in the store; and those from before
    /// the batch that is being written.
    private var uncertain: Set<ByteText> = []
    private var uncertainInBatch: Set<ByteText> = []

    /// - Parameter windows: as the store has them.
    init(_ windows: [ByteText: MutationWindow]) {
        self.windows = windows
        known = windows.mapValues(\.last)
        for (client, _) in windows.sorted(by: { $0.value.revision < $1.value.revision }) { order.use(client) }
    }

    var count: Int { windows.count }
    var hasUnwritten: Bool { !unwritten.isEmpty }

    /// What is remembered without what is not written; of what is written nothing is missing.
    var written: [ByteText: MutationWindow] {
        var written = windows
        for (client, window) in before { written[client] = window }
        return written
    }

    /// What became of a mutation that came before; nil for a new one.
    func outcome(of mutation: DocumentMutation, by client: ByteText) -> MutationOutcome? {
        windows[client]?.outcome(of: mutation)
    }

    /// - Parameter most: clients that may be remembered.
    mutating func remember(
        _ outcome: MutationOutcome, of mutation: DocumentMutation, by client: ByteText, _ ground: Ground, most: Int
    ) {
        if ground == .uncertain { uncertain.insert(client) }
        if ground != .unwritten, before[client] == nil { before[client] = .some(windows[client]) }
        windows[client, default: MutationWindow()].remember(outcome, of: mutation)
        order.use(client)
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

    /// All that is to be written. Later changes of the same clients are to be written again.
    mutating func beginWrite() -> [ByteText: WindowChange] {
        defer { unwritten = [:] }
        (uncertainInBatch, uncertain) = (uncertain, [])
        var changes: [ByteText: WindowChange] = [:]
        for (client, window) in unwritten { changes[client] = WindowChange(window: window, known: known[client]) }
        return changes
    }

    /// What was to be written is in the store.
    mutating func endWrite(_ changes: [ByteText: WindowChange]) {
        for (client, change) in changes {
            let isDone = unwritten[client] == nil && !uncertain.contains(client)
            before[client] = isDone ? nil : .some(change.window)
            // One that was forgotten meanwhile begins anew.
            if windows[client] != nil { known[client] = change.window?.last }
        }
        for client in uncertainInBatch where changes[client] == nil {
            if unwritten[client] == nil, !uncertain.contains(client) { before[client] = nil }
        }
        uncertainInBatch = []
    }

    /// What was to be written cannot be: all is as the store has it.
    mutating func discardUnwritten() {
        for (client, window) in before {
            windows[client] = window
            if window == nil { order.remove(client) } else { order.use(client) }
        }
        (unwritten, before) = ([:], [:])
        (uncertain, uncertainInBatch) = ([], [])
    }
}

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

    /// The maximum size of all recorded outcomes in bytes.
    static let maximumBytes = 32 << 20
    /// The size of a client without outcomes in bytes.
    private static let clientOverhead = 256
    /// The divisor of the share of one party, which evicts its own clients when they exceed it.
    private static let shareDivisor = 16

    /// The clients of a party, a host or a principal.
    private struct Share {
        var order = LRUOrder<ByteText>()
        var bytes = 0
    }

    /// The number of clients that one command evicts when there are too many.
    private static let forgottenAtOnce = 64

    private var windows: [ByteText: MutationDeduplicationWindow]
    private var order = LRUOrder<ByteText>()
    /// The size of all clients in bytes.
    private(set) var byteCount = 0
    private var shares: [MutationParty: Share] = [:]
    /// The party that has used a client last, since the collection was loaded. Loopback callers that are not signed in have none.
    private var parties: [ByteText: MutationParty] = [:]
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
        byteCount = windows.reduce(0) { $0 + Self.size($1.key, $1.value) }
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

    private static func size(_ client: ByteText, _ window: MutationDeduplicationWindow) -> Int {
        clientOverhead + client.text.utf8.count + window.byteCount
    }

    private mutating func countBytes(_ bytes: Int, of client: ByteText) {
        byteCount += bytes
        if let party = parties[client] { shares[party]?.bytes += bytes }
    }

    /// Counts a client for the party that uses it now.
    private mutating func setParty(_ party: MutationParty?, of client: ByteText) {
        let before = parties[client]
        if let party { shares[party, default: Share()].order.markUsed(client) }
        guard before != party else { return }
        let bytes = windows[client].map { Self.size(client, $0) } ?? 0
        if let before {
            shares[before]?.order.remove(client)
            shares[before]?.bytes -= bytes
            if shares[before]?.order.count == 0 { shares[before] = nil }
        }
        parties[client] = party
        if let party { shares[party]?.bytes += bytes }
    }

    private mutating func removeClient(_ client: ByteText) {
        if let window = windows[client] { countBytes(-Self.size(client, window), of: client) }
        windows[client] = nil
        setParty(nil, of: client)
        order.remove(client)
    }

    /// Returns the client to evict: one of the party that adds another when it has used its share, else the least recently used.
    private func clientToEvict(for party: MutationParty?, most: Int) -> ByteText? {
        guard let party, let share = shares[party],
            share.order.count > max(1, most / Self.shareDivisor) || share.bytes > Self.maximumBytes / Self.shareDivisor
        else { return order.first }
        return share.order.first
    }

    /// - Parameters:
    ///   - party: the party of the caller.
    ///   - most: the maximum number of clients.
    mutating func remember(
        _ outcome: MutationOutcome, of mutation: DocumentMutation, by client: ByteText, party: MutationParty? = nil,
        _ ground: Basis, most: Int
    ) {
        if ground == .uncertain { uncertain.insert(client) }
        if ground != .unwritten, before[client] == nil { before[client] = .some(windows[client]) }
        setParty(party, of: client)
        let size = windows[client].map { Self.size(client, $0) } ?? 0
        windows[client, default: MutationDeduplicationWindow()].remember(outcome, of: mutation)
        countBytes((windows[client].map { Self.size(client, $0) } ?? 0) - size, of: client)
        order.markUsed(client)
        if ground == .written { unwritten[client] = windows[client] }
        var count = 0
        while windows.count > max(1, most) || byteCount > Self.maximumBytes && windows.count > 1,
            count < Self.forgottenAtOnce, let forgotten = clientToEvict(for: party, most: most)
        {
            count += 1
            removeClient(forgotten)
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
            if let window {
                let size = windows[client].map { Self.size(client, $0) } ?? 0
                windows[client] = window
                countBytes(Self.size(client, window) - size, of: client)
                order.markUsed(client)
            } else {
                removeClient(client)
            }
        }
        (unwritten, before) = ([:], [:])
        (uncertain, uncertainInBatch) = ([], [])
    }
}

/// The party whose share of the recorded mutations a client uses.
enum MutationParty: Hashable, Sendable {
    /// The identifier of a host within the collection.
    case host(UInt32)
    case principal(ByteText)

    /// Returns nil for a loopback caller that is not signed in.
    init?(host: UInt32?, principal: String?) {
        if let host {
            self = .host(host)
        } else if let principal {
            self = .principal(ByteText(principal))
        } else {
            return nil
        }
    }
}

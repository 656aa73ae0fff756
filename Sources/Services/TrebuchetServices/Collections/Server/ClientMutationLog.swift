internal import Platform

/// The recorded mutations of a collection's clients, which prevent a repeated execution, with those that are not in the store
/// yet. Pure.
///
/// Outcomes of mutations without changes are not written separately, and may be lost when the process ends. They are evicted before
/// outcomes with changes, whose loss could repeat a change. The scope with the most outcomes of the evicted kind loses one.
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
    static let maximumBytes = CollectionLimits.outcomeBytes
    /// The size of a client without outcomes in bytes.
    private static let clientOverhead = 256
    /// The divisor of the share of one scope, which evicts its own clients when they exceed it.
    private static let shareDivisor = 16

    /// The clients of a scope, a host or a principal.
    private struct Share {
        /// The clients whose mutations have changed nothing.
        var unchanging = SlotOrder()
        /// The other clients.
        var changing = SlotOrder()
        var bytes = 0

        var count: Int { unchanging.count + changing.count }
        /// The client to evict first.
        var first: Int? { unchanging.first ?? changing.first }
    }

    private struct Client {
        let name: ByteText
        var window = MutationDeduplicationWindow()
        /// The scope that has used it last, since the collection was loaded. Loopback callers that are not signed in have none.
        var scope: MutationScope?
        /// True when one of its mutations has changed a document.
        var hasChanges = false
        /// The newest number whose outcome is in the store.
        var known: Int?
        /// The newest number that stays after a failed write, 0 when the client does not; nil when all of them stay.
        var settled: Int?
        /// True when it has changes for the next batch.
        var isUnwritten = false
        /// True when it has an outcome that was not written but depends on unwritten changes; the second one is that of the
        /// current batch.
        var isUncertain = false
        var isUncertainInBatch = false

        /// Its size in bytes.
        var byteCount: Int { ClientMutationLog.clientOverhead + name.text.utf8.count + window.byteCount }
        /// True when the next outcomes do not depend on a write.
        var isDone: Bool { !isUnwritten && !isUncertain }
    }

    /// The number of clients that one command evicts when there are too many.
    private static let evictionBatch = 64

    /// The clients in slots; unused slots have clients without a name.
    private var clients: [Client] = []
    private var unusedSlots: [Int] = []
    private var slots: [ByteText: Int] = [:]
    private var links: [SlotOrder.Link] = []
    private var shares: [MutationScope?: Share] = [:]
    /// The parties by their numbers of clients without changes, of all clients, and of bytes.
    private var mostUnchanging = LargestFirst<MutationScope?>()
    private var mostClients = LargestFirst<MutationScope?>()
    private var mostBytes = LargestFirst<MutationScope?>()
    /// The size of all clients in bytes.
    private(set) var byteCount = 0
    /// The slots of clients with changes for the next batch, and evicted clients, which the store may have.
    private var unwritten: [Int] = []
    private var evicted: Set<ByteText> = []
    /// The slots of clients that a failed write changes, and of those whose outcomes are uncertain.
    private var unsettled: [Int] = []
    private var uncertain: [Int] = []
    private var uncertainInBatch: [Int] = []

    /// - Parameter windows: the contents of the store.
    init(_ windows: [ByteText: MutationDeduplicationWindow]) {
        for (name, window) in windows.sorted(by: { $0.value.revision < $1.value.revision }) {
            let slot = addClient(name)
            clients[slot].window = window
            clients[slot].known = window.last
            clients[slot].hasChanges = true
            byteCount += clients[slot].byteCount
            insertIntoShare(slot)
        }
    }

    var count: Int { slots.count }
    var hasUnwritten: Bool { !unwritten.isEmpty || !evicted.isEmpty }

    /// True when the written state has a client.
    var hasWritten: Bool { slots.values.contains { clients[$0].settled != 0 } }

    /// The written state of all clients. No written outcome is missing.
    var written: [ByteText: MutationDeduplicationWindow] {
        var written: [ByteText: MutationDeduplicationWindow] = [:]
        written.reserveCapacity(slots.count)
        for (name, slot) in slots {
            guard let settled = clients[slot].settled else {
                written[name] = clients[slot].window
                continue
            }
            guard settled > 0 else { continue }
            var window = clients[slot].window
            window.removeOutcomes(after: settled)
            written[name] = window
        }
        return written
    }

    /// Returns the outcome of a repeated mutation; nil for a new one.
    func outcome(of mutation: DocumentMutation, by client: ByteText) -> MutationOutcome? {
        slots[client].flatMap { clients[$0].window.outcome(of: mutation) }
    }

    private mutating func addClient(_ name: ByteText) -> Int {
        let slot: Int
        if let unused = unusedSlots.popLast() {
            slot = unused
            clients[slot] = Client(name: name)
        } else {
            slot = clients.count
            clients.append(Client(name: name))
            links.append(SlotOrder.Link())
        }
        slots[name] = slot
        return slot
    }

    /// Counts a client for its scope, as the most recently used one.
    private mutating func insertIntoShare(_ slot: Int) {
        let scope = clients[slot].scope
        shares[scope, default: Share()].bytes += clients[slot].byteCount
        if clients[slot].hasChanges {
            shares[scope]?.changing.markUsed(slot, &links)
        } else {
            shares[scope]?.unchanging.markUsed(slot, &links)
        }
        setSizes(of: scope)
    }

    private mutating func removeFromShare(_ slot: Int) {
        let scope = clients[slot].scope
        shares[scope]?.bytes -= clients[slot].byteCount
        if clients[slot].hasChanges {
            shares[scope]?.changing.remove(slot, &links)
        } else {
            shares[scope]?.unchanging.remove(slot, &links)
        }
        setSizes(of: scope)
        if shares[scope]?.count == 0 { shares[scope] = nil }
    }

    private mutating func setSizes(of scope: MutationScope?) {
        guard let share = shares[scope] else { return }
        mostUnchanging.setSize(share.unchanging.count, of: scope)
        mostClients.setSize(share.count, of: scope)
        mostBytes.setSize(share.bytes, of: scope)
    }

    private mutating func removeClient(_ slot: Int) {
        byteCount -= clients[slot].byteCount
        removeFromShare(slot)
        slots[clients[slot].name] = nil
        clients[slot] = Client(name: ByteText(""))
        unusedSlots.append(slot)
    }

    /// Returns the client to evict: one of the scope that adds another when it has used its share, else one without changes, else
    /// one of the scope with the most.
    private func clientToEvict(for scope: MutationScope?, most: Int) -> Int? {
        if scope != nil, let share = shares[scope],
            share.count > max(1, most / Self.shareDivisor) || share.bytes > Self.maximumBytes / Self.shareDivisor
        {
            return share.first
        }
        let largest =
            mostUnchanging.first ?? (slots.count > max(1, most) ? mostClients.first : mostBytes.first)
        return largest.flatMap { shares[$0]?.first }
    }

    /// - Parameters:
    ///   - scope: the scope of the caller.
    ///   - most: the maximum number of clients.
    mutating func remember(
        _ outcome: MutationOutcome, of mutation: DocumentMutation, by client: ByteText, scope: MutationScope? = nil,
        _ ground: Basis, most: Int
    ) {
        let present = slots[client]
        let slot = present ?? addClient(client)
        if present == nil { byteCount += clients[slot].byteCount }
        if ground != .unwritten, clients[slot].settled == nil {
            clients[slot].settled = present == nil ? 0 : clients[slot].window.last
            unsettled.append(slot)
        }
        if ground == .uncertain, !clients[slot].isUncertain {
            clients[slot].isUncertain = true
            uncertain.append(slot)
        }
        if ground == .written, !clients[slot].isUnwritten {
            clients[slot].isUnwritten = true
            unwritten.append(slot)
        }
        if present != nil { removeFromShare(slot) }
        let before = clients[slot].byteCount
        clients[slot].scope = scope
        if ground == .written { clients[slot].hasChanges = true }
        clients[slot].window.remember(outcome, of: mutation)
        byteCount += clients[slot].byteCount - before
        insertIntoShare(slot)
        var count = 0
        while slots.count > max(1, most) || byteCount > Self.maximumBytes && slots.count > 1,
            count < Self.evictionBatch, let forgotten = clientToEvict(for: scope, most: most)
        {
            count += 1
            evicted.insert(clients[forgotten].name)
            removeClient(forgotten)
        }
    }

    // MARK: Writing

    /// Returns all unwritten changes. Later changes of the same clients are part of the next batch.
    mutating func beginWrite() -> [(client: ByteText, change: MutationWindowChange)] {
        var changes: [(client: ByteText, change: MutationWindowChange)] = []
        changes.reserveCapacity(unwritten.count + evicted.count)
        for name in evicted { changes.append((name, MutationWindowChange(window: nil, known: nil))) }
        for slot in unwritten where clients[slot].isUnwritten {
            clients[slot].isUnwritten = false
            let client = clients[slot]
            let new = client.known.map { client.window.outcomes(after: $0) } ?? client.window
            changes.append((client.name, MutationWindowChange(window: new, known: client.known, slot: slot)))
        }
        for slot in uncertain where clients[slot].isUncertain {
            (clients[slot].isUncertain, clients[slot].isUncertainInBatch) = (false, true)
        }
        (unwritten, evicted, uncertainInBatch, uncertain) = ([], [], uncertain, [])
        return changes
    }

    /// Completes a batch that is in the store.
    mutating func endWrite(_ changes: [(client: ByteText, change: MutationWindowChange)]) {
        for (name, change) in changes {
            // A client that was evicted meanwhile starts without a known number.
            guard let window = change.window, clients[change.slot].name == name else { continue }
            clients[change.slot].known = window.last
            clients[change.slot].settled = clients[change.slot].isDone ? nil : window.last
        }
        for slot in uncertainInBatch where clients[slot].isUncertainInBatch {
            clients[slot].isUncertainInBatch = false
            if clients[slot].isDone { clients[slot].settled = nil }
        }
        uncertainInBatch = []
        unsettled.removeAll { clients[$0].settled == nil }
    }

    /// Discards unwritten changes after a failed write.
    mutating func discardUnwritten() {
        for slot in unsettled {
            guard let settled = clients[slot].settled else { continue }
            if settled == 0 {
                removeClient(slot)
            } else {
                clients[slot].settled = nil
                (clients[slot].isUnwritten, clients[slot].isUncertain) = (false, false)
                clients[slot].isUncertainInBatch = false
                removeFromShare(slot)
                byteCount -= clients[slot].byteCount
                clients[slot].window.removeOutcomes(after: settled)
                byteCount += clients[slot].byteCount
                insertIntoShare(slot)
            }
        }
        (unwritten, evicted, unsettled, uncertain, uncertainInBatch) = ([], [], [], [], [])
    }
}

/// The scope whose share of the recorded mutations a client uses.
enum MutationScope: Hashable, Sendable {
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

internal import Bytes
internal import Synchronization
internal import Trebuchet

/// Counts the bytes that all rooms of a server store for clients: presences and events, per connection, principal, host and
/// network, and in total. The server's `bufferedBytes` include the total.
final class RoomMemoryLedger: Sendable {
    /// Counted bytes and the parties for which they count.
    struct Charge: Sendable {
        let bytes: Int
        let holder: QuotaHolder
        /// The state of the connection; nil when it has closed.
        weak var client: RoomConnectionState?
    }

    private struct Usage {
        var holders: HolderQuotaUsage
        var total = 0
    }

    private let limit: Int
    private let limitPerConnection: Int
    /// The budget of the server.
    private let server: MemoryBudget
    private let usage: Mutex<Usage>

    init(_ limits: RoomLimits, in server: MemoryBudget) {
        limit = limits.storedBytes
        limitPerConnection = limits.storedBytesPerConnection
        self.server = server
        usage = Mutex(
            Usage(
                holders: HolderQuotaUsage(
                    perPrincipal: limits.storedBytesPerPrincipal, perHost: limits.storedBytesPerHost)))
    }

    /// The bytes of all rooms.
    var totalBytes: Int { usage.withLock { $0.total } }

    /// The largest number of bytes that counts for a holder.
    func bytes(of holder: QuotaHolder) -> Int { usage.withLock { $0.holders.most(of: holder) } }

    /// Counts new bytes in place of released ones. Throws, and changes nothing, when a quota or the total would grow above its
    /// limit. Fewer bytes than the same parties release are never refused.
    func replace(_ released: [Charge], with new: Charge) throws(RoomError) {
        let own = released.reduce(0) { $0 + ($1.client === new.client ? $1.bytes : 0) }
        if let client = new.client, !client.countStoredBytes(new.bytes - own, limit: limitPerConnection) {
            throw .clientTooLarge(limit: limitPerConnection)
        }
        let problem = usage.withLock { usage -> RoomError? in
            release(released, from: &usage)
            guard let problem = self.problem(with: new, insteadOf: released, in: usage) else {
                usage.holders.reserve(new.holder, new.bytes)
                usage.total += new.bytes
                return nil
            }
            for charge in released { count(charge, in: &usage) }
            return problem
        }
        if let problem {
            _ = new.client?.countStoredBytes(own - new.bytes)
            throw problem
        }
        for charge in released where charge.client !== new.client { _ = charge.client?.countStoredBytes(-charge.bytes) }
    }

    /// Reserves the bytes in the server's budget when it returns nil.
    private func problem(with new: Charge, insteadOf released: [Charge], in usage: Usage) -> RoomError? {
        let growth = new.bytes - released.reduce(0) { $0 + $1.bytes }
        let own = released.reduce(0) { $0 + ($1.holder == new.holder ? $1.bytes : 0) }
        if new.bytes > own, let exceeded = usage.holders.exceeded(new.holder, by: new.bytes) {
            return .clientTooLarge(limit: exceeded)
        }
        guard growth > 0 else {
            server.adjustUsage(by: growth)
            return nil
        }
        guard usage.total + new.bytes <= limit else { return .serverTooLarge(limit: limit) }
        return server.reserve(growth) ? nil : .serverTooLarge(limit: server.limit)
    }

    /// Counts bytes that are stored already, regardless of the limits.
    func add(_ charge: Charge) {
        _ = charge.client?.countStoredBytes(charge.bytes)
        server.adjustUsage(by: charge.bytes)
        usage.withLock { count(charge, in: &$0) }
    }

    func release(_ charges: [Charge]) {
        guard !charges.isEmpty else { return }
        for charge in charges { _ = charge.client?.countStoredBytes(-charge.bytes) }
        server.release(charges.reduce(0) { $0 + $1.bytes })
        usage.withLock { release(charges, from: &$0) }
    }

    private func count(_ charge: Charge, in usage: inout Usage) {
        usage.holders.reserve(charge.holder, charge.bytes)
        usage.total += charge.bytes
    }

    private func release(_ charges: [Charge], from usage: inout Usage) {
        for charge in charges {
            usage.holders.release(charge.holder, charge.bytes)
            usage.total -= charge.bytes
        }
    }
}

/// The counted bytes of one room; released with it.
///
/// It is used in the isolation of its room only.
final class RoomMemory {
    typealias Charge = RoomMemoryLedger.Charge

    private let ledger: RoomMemoryLedger
    private var presences: [String: Charge] = [:]
    /// The charges of the stored events, oldest first.
    private var events: ArraySlice<Charge> = []

    init(_ ledger: RoomMemoryLedger) { self.ledger = ledger }

    deinit { releaseAll() }

    /// The charge of a member's presence.
    func presence(of membershipID: String?) -> Charge? { membershipID.flatMap { presences[$0] } }

    /// Counts a new charge in place of another; throws when a limit refuses it. ``setPresence(_:of:)`` or ``undo(_:to:)`` must
    /// follow.
    func exchange(_ before: Charge?, for charge: Charge) throws(RoomError) {
        try ledger.replace(before.map { [$0] } ?? [], with: charge)
    }

    /// Counts the charge before an exchange again.
    func undo(_ charge: Charge, to before: Charge?) {
        ledger.release([charge])
        if let before { ledger.add(before) }
    }

    /// Assigns a counted charge to a member.
    func setPresence(_ charge: Charge, of membershipID: String) { presences[membershipID] = charge }

    /// Counts a stored presence, regardless of the limits.
    func addPresence(_ charge: Charge, of membershipID: String) {
        removePresence(of: membershipID)
        ledger.add(charge)
        presences[membershipID] = charge
    }

    /// Counts the presence of a member for another holder.
    func movePresence(of membershipID: String, to holder: QuotaHolder) {
        guard let charge = presences[membershipID], charge.holder != holder else { return }
        addPresence(Charge(bytes: charge.bytes, holder: holder, client: charge.client), of: membershipID)
    }

    func removePresence(of membershipID: String) {
        if let charge = presences.removeValue(forKey: membershipID) { ledger.release([charge]) }
    }

    /// Counts a new event in place of the oldest ones; throws when a limit refuses it.
    func appendEvent(_ charge: Charge, dropping count: Int) throws(RoomError) {
        try ledger.replace(Array(events.prefix(count)), with: charge)
        events.removeFirst(min(count, events.count))
        events.append(charge)
    }

    /// Counts a stored event, regardless of the limits.
    func addEvent(_ charge: Charge) {
        ledger.add(charge)
        events.append(charge)
    }

    func releaseAll() {
        ledger.release(Array(presences.values) + events)
        (presences, events) = ([:], [])
    }
}

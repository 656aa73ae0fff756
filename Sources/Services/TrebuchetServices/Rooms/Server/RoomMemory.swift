internal import Bytes

/// Counts the presences and events of all rooms.
typealias RoomMemoryLedger = MemoryLedger<RoomConnectionState, RoomError>

extension RoomError: MemoryLimitError {}

extension RoomLimits {
    var memory: MemoryLimits {
        MemoryLimits(
            total: storedBytes, perConnection: storedBytesPerConnection, perPrincipal: storedBytesPerPrincipal,
            perHost: storedBytesPerHost)
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

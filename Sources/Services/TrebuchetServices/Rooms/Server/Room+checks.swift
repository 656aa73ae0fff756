internal import Platform
internal import Trebuchet

/// Checks of presences and events against the limits.
extension Room {
    /// Takes more updates from the caller's rate for a large presence, which costs more.
    func consumeUpdates(of bytes: Int) throws(RoomError) {
        let calls = bytes / RoomLimits.bytesPerUpdate
        if calls > 0 { try host.consumeRate(.presenceUpdates, of: try host.callingClient(), calls: calls) }
    }

    func checkMembers(_ members: Int) throws(RoomError) {
        let limit = RoomLimits.maximumPresenceMembers
        guard members > limit else { return }
        throw .invalidValue("the objects of a presence have \(members) members, of at most \(limit)")
    }

    /// The size first: larger values are not decoded. The canonical text counts too: `1e15` has 16 digits.
    func value(_ encoded: EncodedJSON) throws(RoomError) -> StoredJSON {
        try check(encoded.byteCount)
        let (depth, members) = encoded.nesting
        guard depth <= RoomLimits.maximumDepth else { throw .tooDeep(limit: RoomLimits.maximumDepth) }
        try checkMembers(members)
        let value: StoredJSON
        do {
            value = try StoredJSON(json: encoded.bytes)
        } catch {
            throw .invalidValue("\(error)")
        }
        try check(value.byteCount)
        return value
    }

    func check(_ bytes: Int) throws(RoomError) {
        let limit = maximumRecorded(host.limits.presenceBytes)
        guard bytes > limit else { return }
        throw .presenceTooLarge(bytes: bytes, limit: limit)
    }

    /// Each value is one entry in the coordination store, which has its own limit.
    func maximumRecorded(_ limit: Int) -> Int {
        handoffState == nil ? limit : min(limit, RoomLimits.maximumRecordedEntries)
    }

    /// Counts the caller's new presence; throws when a limit refuses it.
    func chargePresence(_ presence: StoredJSON?, of membershipID: String) throws(RoomError) {
        let holder = holders[membershipID] ?? .anonymous
        try presenceBatch.check(presence, of: membershipID, for: holder)
        let charge = RoomMemory.Charge(
            bytes: PresenceBatch.size(presence), holder: holder, client: try host.callingClient())
        try memory.exchange(memory.presence(of: membershipID), for: charge)
        memory.setPresence(charge, of: membershipID)
    }
}

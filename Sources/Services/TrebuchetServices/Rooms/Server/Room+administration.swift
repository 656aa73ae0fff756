internal import Platform
internal import Trebuchet

/// Operations for administrators.
extension Room {
    /// Returns the members, sorted by the bytes of their identifiers.
    func members() -> [RoomMemberSummary] {
        updatePrincipals()
        return membership.all.map { member in
            RoomMemberSummary(
                membershipID: member.membershipID, principal: member.principal,
                host: member.client?.connection.remoteAddress?.host,
                isConnected: member.client != nil,
                storedPresence: presenceBatch.newestPresence(of: member.membershipID, in: roster))
        }.sorted { $0.membershipID.precedesInBytes($1.membershipID) }
    }

    /// Ends a membership and bans its client for a time; returns false when there is no such membership.
    func kick(_ membershipID: String, for time: Duration) -> Bool {
        guard let member = membership.all.first(where: { $0.membershipID.isSameBytes(as: membershipID) }) else {
            return false
        }
        host.ban(member.principal, member.client?.connection, from: name, for: time)
        endMembership(member.membershipID)
        closeIfEmpty()
        return true
    }
}

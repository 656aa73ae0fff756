internal import Platform
internal import Trebuchet

/// Changes of the principals of members.
extension Room {
    /// Removes a member whose principal has changed or whose session has ended, or that may not join any more because it lost a
    /// role.
    func authorizationDidChange(of client: RoomConnectionState) {
        updatePrincipal(of: client)
        defer { closeIfEmpty() }
        guard let membershipID = try? membership.membershipID(of: client),
            !host.rules.canJoin(client.connection.principal, name)
        else { return }
        endMembership(membershipID)
    }

    /// Ends the membership of a connection whose principal has changed or whose session has ended, so that the next principal
    /// gets nothing of it. When an anonymous client has signed in, its membership becomes that of the principal.
    ///
    /// Each call of a member compares the principals, because the notification of a change arrives later.
    func updatePrincipal(of client: RoomConnectionState) {
        guard let membershipID = try? membership.membershipID(of: client) else { return }
        let before = membership.principal(of: membershipID)
        guard !client.connection.isRevoked else { return endMembership(membershipID) }
        let principal = client.connection.principal?.id
        if before.map({ ByteText($0) }) == principal.map({ ByteText($0) }) { return }
        let holder = QuotaHolder(principal: principal, host: client.host)
        guard before == nil, let principal,
            (try? membership.setPrincipal(principal, of: membershipID, holder: holder)) != nil
        else { return endMembership(membershipID) }
        setQuotaHolder(of: membershipID, to: holder)
        publishPresence(presenceBatch.newestPresence(of: membershipID, in: roster), of: membershipID)
        recordMembership(membershipID, of: client)
    }

    /// Applies changes of principals that the room has not been notified of yet.
    func updatePrincipals() {
        for member in membership.all { if let client = member.client { updatePrincipal(of: client) } }
        closeIfEmpty()
    }
}

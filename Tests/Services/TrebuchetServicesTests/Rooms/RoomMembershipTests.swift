import Testing

@testable import TrebuchetServices

@Suite struct RoomMembershipTests {
    private typealias Membership = RoomMembership<Int>

    private var membership = Membership(limit: 3, grace: 10)
    private var made = 0

    private mutating func join(_ guest: Int, as principal: String? = nil, token: String? = nil) throws
        -> Membership.Joined
    {
        made += 1
        let number = made
        return try membership.join(guest, principal: principal, token: token) {
            .init(membershipID: "s\(number)", token: "t\(number)")
        }
    }

    @Test("a connection has one membership, however often it joins")
    mutating func oneStay() throws {
        #expect(try join(1) == .init(identity: .init(membershipID: "s1", token: "t1"), isNew: true, replaced: nil))
        #expect(try join(1) == .init(identity: .init(membershipID: "s1", token: "t1"), isNew: false, replaced: nil))
        #expect(try join(1, token: "t1").identity.membershipID == "s1")
        #expect(membership.count == 1)
    }

    @Test("a token takes the membership over from a closed connection")
    mutating func resumed() throws {
        _ = try join(1)
        #expect(membership.startGracePeriod(of: 1, at: 100) == "s1")
        #expect(membership.nextExpiry == 110)
        #expect(
            try join(2, token: "t1")
                == .init(identity: .init(membershipID: "s1", token: "t1"), isNew: false, replaced: nil))
        #expect(membership.nextExpiry == nil)
        #expect(membership.endExpired(at: 1_000) == [])
    }

    @Test("a token takes the membership over from a connection not known to be dead, which loses it immediately")
    mutating func takenOver() throws {
        _ = try join(1)
        #expect(try join(2, token: "t1").replaced == 1)
        #expect(throws: RoomError.notJoined) { try membership.membershipID(of: 1) }
        #expect(try membership.membershipID(of: 2) == "s1")
        #expect(membership.startGracePeriod(of: 1, at: 100) == nil, "the later end of that connection has no effect")
        #expect(membership.nextExpiry == nil)
    }

    @Test("a membership without a connection ends after the reconnect time, and not before")
    mutating func grace() throws {
        _ = try join(1)
        _ = try join(2)
        _ = membership.startGracePeriod(of: 1, at: 100)
        _ = membership.startGracePeriod(of: 2, at: 105)
        #expect(membership.endExpired(at: 109) == [])
        #expect(membership.endExpired(at: 110) == ["s1"])
        #expect(membership.nextExpiry == 115)
        #expect(throws: RoomError.unknownToken) { try join(3, token: "t1") }
        #expect(membership.endExpired(at: 115) == ["s2"])
        #expect(membership.isEmpty)
    }

    @Test("a repeated join with one attempt makes no second membership, over any connection")
    mutating func lostAnswer() throws {
        let identity = { Membership.Identity(membershipID: "s", token: "t") }
        let first = try membership.join(1, principal: nil, token: nil, attempt: "a", makeIdentity: identity)
        let again = try membership.join(2, principal: nil, token: nil, attempt: "a", makeIdentity: identity)
        #expect(first.isNew && again == .init(identity: identity(), isNew: false, replaced: 1))
        membership.endMembership("s")
        #expect(try membership.join(2, principal: nil, token: nil, attempt: "a", makeIdentity: identity).isNew)
        #expect(membership.count == 1)
    }

    @Test("an invalid token joins nothing: neither a guess nor a membership id")
    mutating func guessed() throws {
        _ = try join(1)
        for token in ["", "t2", "s1"] {
            #expect(throws: RoomError.unknownToken) { try join(2, token: token) }
            #expect(throws: RoomError.unknownToken) { try membership.membershipID(provenBy: token) }
        }
        #expect(membership.count == 1)
    }

    @Test("a token is useless for another user, and for a connection with its own membership")
    mutating func stolen() throws {
        _ = try join(1, as: "ada")
        _ = try join(2, as: "bob")
        #expect(throws: RoomError.alreadyJoined) { try join(2, token: "t1") }
        #expect(throws: RoomError.notYours) { try join(3, as: "bob", token: "t1") }
        #expect(try membership.membershipID(of: 1) == "s1")
        #expect(throws: RoomError.notSignedIn) { try join(4, token: "t1") }
        #expect(try join(4, as: "ada", token: "t1").identity.membershipID == "s1")
        #expect(throws: RoomError.notYours) { try join(5, as: "bob", token: "t1") }
    }

    @Test("a full room accepts only returning members")
    mutating func full() throws {
        for guest in 1...3 { _ = try join(guest) }
        #expect(throws: RoomError.roomFull(limit: 3)) { try join(4) }
        _ = membership.startGracePeriod(of: 2, at: 0)
        #expect(throws: RoomError.roomFull(limit: 3)) { try join(4) }
        #expect(try join(4, token: "t2").identity.membershipID == "s2")
        #expect(membership.endMembership("s1") == 1)
        #expect(try join(5).isNew)
    }

    @Test("users and secrets are distinguished by their bytes: é in one character differs from é in two")
    mutating func bytes() throws {
        let (composed, decomposed) = ("0123456789abcdef\u{e9}", "0123456789abcdefe\u{301}")
        let first = try membership.join(1, principal: composed, token: nil, attempt: composed) {
            .init(membershipID: "s1", token: "t1")
        }
        let second = try membership.join(2, principal: nil, token: nil, attempt: decomposed) {
            .init(membershipID: "s2", token: "t2")
        }
        #expect(first.identity.membershipID == "s1" && second.identity.membershipID == "s2")
        #expect(throws: RoomError.notYours) { try join(3, as: decomposed, token: "t1") }
    }

    @Test(
        "a membership belongs to its principal; that of an anonymous client becomes that of the principal that signs in"
    )
    mutating func principals() throws {
        membership = Membership(limit: 3, grace: 10, perPrincipal: 1)
        _ = try join(1, as: "ada")
        #expect(throws: RoomError.notYours) { try join(1, as: "bob") }
        #expect(throws: RoomError.notSignedIn) { try join(1) }
        #expect(throws: RoomError.notYours) { try membership.membershipID(provenBy: "t1", for: "bob") }
        #expect(throws: RoomError.notSignedIn) { try membership.membershipID(provenBy: "t1", for: nil) }
        #expect(try membership.membershipID(provenBy: "t1", for: "ada") == "s1")
        let anonymous = try join(2).identity
        #expect(try membership.membershipID(provenBy: anonymous.token, for: "bob") == anonymous.membershipID)
        let (ada, bob) = (QuotaHolder(principal: "ada", host: nil), QuotaHolder(principal: "bob", host: nil))
        try membership.setPrincipal("ada", of: "s1", holder: ada)
        #expect(throws: RoomError.tooManySessions(limit: 1)) {
            try membership.setPrincipal("ada", of: anonymous.membershipID, holder: ada)
        }
        try membership.setPrincipal("bob", of: anonymous.membershipID, holder: bob)
        #expect(membership.principal(of: anonymous.membershipID) == "bob")
        #expect(throws: RoomError.notYours) { try join(3, as: "eve", token: anonymous.token) }
    }
}

import Testing
import Trebuchet
import TrebuchetCluster

@testable import TrebuchetServices

/// Signing in at servers with shared accounts.
@Suite struct SharedSignInTests {
    @Test("a user signed in at one node is known at each, and can refresh the session there")
    func everywhere() async throws {
        try await AuthNodes.run { nodes in
            let (client, grant) = try await nodes.signIn("ada@b.c", at: nodes.a)
            #expect(try await client.caller() == grant.user.id)
            let other = try await nodes.b.client(token: grant.accessToken)
            #expect(try await other.caller() == grant.user.id)
            #expect(try await other.roles() == ["user"])
            let renewed = try await nodes.b.client().auth.refresh(grant.refreshToken)
            #expect(renewed.user == grant.user && renewed.refreshToken != grant.refreshToken)
            #expect(try await nodes.a.client(token: renewed.accessToken).caller() == grant.user.id)
            #expect(try await nodes.a.client().auth.refresh(renewed.refreshToken).user == grant.user)
            // A second sign-in has the same account.
            #expect(try await nodes.signIn("ada@b.c", at: nodes.b).grant.user == grant.user)
        }
    }

    @Test("a guest of one node can become a user at another, and keeps the id")
    func guest() async throws {
        try await AuthNodes.run { nodes in
            let guest = try await nodes.a.client().auth.signInAsGuest()
            let client = try await nodes.b.client(token: guest.accessToken)
            _ = try await client.auth.sendMagicCode(to: "ada@b.c")
            let grant = try await client.auth.verifyMagicCode(
                email: "ada@b.c", code: nodes.mailbox.code(for: "ada@b.c"))
            #expect(grant.user.id == guest.user.id && grant.user.email == "ada@b.c")
            #expect(try await nodes.signIn("ada@b.c", at: nodes.a).grant.user.id == guest.user.id)
        }
    }

    @Test("a code sent by one node is accepted at another, and only once, even when entered at both concurrently")
    func codeOnce() async throws {
        try await AuthNodes.run { nodes in
            for round in 0..<10 {
                let address = "ada\(round)@b.c"
                _ = try await nodes.a.client().auth.sendMagicCode(to: address)
                let code = try nodes.mailbox.code(for: address)
                let clients = [try await nodes.a.client(), try await nodes.b.client()]
                let outcomes = await withTaskGroup(of: AuthError?.self) { group in
                    for client in clients {
                        group.addTask {
                            do {
                                _ = try await client.auth.verifyMagicCode(email: address, code: code)
                                return nil
                            } catch { return error as? AuthError }
                        }
                    }
                    return await group.reduce(into: []) { $0.append($1) }
                }
                #expect(outcomes.count { $0 == nil } == 1 && outcomes.contains(.noCode), "\(outcomes)")
            }
        }
    }

    @Test("wrong codes count over all nodes")
    func wrongTries() async throws {
        try await AuthNodes.run { nodes in
            _ = try await nodes.a.client().auth.sendMagicCode(to: "ada@b.c")
            let code = try nodes.mailbox.code(for: "ada@b.c")
            let wrong = code == "000000" ? "000001" : "000000"
            for left in (0..<5).reversed() {
                let node = left % 2 == 0 ? nodes.a : nodes.b
                await #expect(throws: AuthError.wrongCode(triesLeft: left)) {
                    try await node.client().auth.verifyMagicCode(email: "ada@b.c", code: wrong)
                }
            }
            for node in [nodes.a, nodes.b] {
                await #expect(throws: AuthError.noCode) {
                    try await node.client().auth.verifyMagicCode(email: "ada@b.c", code: code)
                }
            }
        }
    }

    @Test("a code expires at all nodes, and a newer one for the same host replaces it")
    func codeTime() async throws {
        try await AuthNodes.run { nodes in
            _ = try await nodes.a.client().auth.sendMagicCode(to: "ada@b.c")
            let first = try nodes.mailbox.code(for: "ada@b.c")
            _ = try await nodes.b.client().auth.sendMagicCode(to: "ada@b.c")
            let second = try nodes.mailbox.code(for: "ada@b.c")
            if first != second {
                await #expect(throws: AuthError.wrongCode(triesLeft: 4)) {
                    try await nodes.a.client().auth.verifyMagicCode(email: "ada@b.c", code: first)
                }
            }
            nodes.clock.advance(by: .seconds(10 * 60))
            await #expect(throws: AuthError.noCode) {
                try await nodes.a.client().auth.verifyMagicCode(email: "ada@b.c", code: second)
            }
        }
    }

    @Test("an address that signs in at two nodes at once, for the first time, has one account")
    func oneAccount() async throws {
        try await AuthNodes.run { nodes in
            for round in 0..<10 {
                let address = "ada\(round)@b.c"
                // A code for each host: codes are per host.
                var asked: [(client: TrebuchetClient, code: String)] = []
                for (node, host) in [(nodes.a, "10.0.0.1"), (nodes.b, "10.0.0.2")] {
                    let client = try await node.client(from: host)
                    _ = try await client.auth.sendMagicCode(to: address)
                    asked.append((client, try nodes.mailbox.code(for: address)))
                }
                let ids = try await withThrowingTaskGroup(of: String.self) { group in
                    for (client, code) in asked {
                        group.addTask {
                            try await client.auth.verifyMagicCode(email: address, code: code).user.id
                        }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(ids.count == 2 && Set(ids).count == 1)
                let found = try await nodes.a.accounts.summary(of: address)
                #expect(found?.sessions == 2)
            }
            #expect(try await nodes.b.accounts.shared?.count() == AccountCount(all: 10))
        }
    }

    @Test("a refresh token used at two nodes at once is refreshed once, and both return the same token")
    func renewedOnce() async throws {
        try await AuthNodes.run { nodes in
            var token = try await nodes.signIn("ada@b.c", at: nodes.a).grant.refreshToken
            for _ in 0..<10 {
                let clients = [try await nodes.a.client(), try await nodes.b.client()]
                let shown = token
                let tokens = try await withThrowingTaskGroup(of: String.self) { group in
                    for client in clients {
                        group.addTask { try await client.auth.refresh(shown).refreshToken }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(tokens.count == 2 && Set(tokens).count == 1)
                token = tokens[0]
            }
        }
    }

    @Test("reuse of an old refresh token ends the session, at whichever node")
    func reused() async throws {
        try await AuthNodes.run { nodes in
            let grant = try await nodes.signIn("ada@b.c", at: nodes.a).grant
            let second = try await nodes.b.client().auth.refresh(grant.refreshToken)
            let third = try await nodes.a.client().auth.refresh(second.refreshToken)
            await #expect(throws: AuthError.sessionEnded(.tokenReused)) {
                try await nodes.b.client().auth.refresh(grant.refreshToken)
            }
            await #expect(throws: AuthError.self) { try await nodes.a.client().auth.refresh(third.refreshToken) }
        }
    }

    @Test("accounts count over all nodes, and deleted ones make room at each")
    func counts() async throws {
        var limits = AuthLimits()
        (limits.accounts, limits.guests) = (4, 3)
        try await AuthNodes.run(limits) { nodes in
            var guests: [SessionGrant] = []
            for node in [nodes.a, nodes.b, nodes.a] { guests.append(try await node.client().auth.signInAsGuest()) }
            for node in [nodes.a, nodes.b] {
                await #expect(throws: AuthError.limitReached("guests")) {
                    try await node.client().auth.signInAsGuest()
                }
            }
            _ = try await nodes.signIn("ada@b.c", at: nodes.b)
            await #expect(throws: AuthError.limitReached("accounts")) {
                _ = try await nodes.signIn("b@b.c", at: nodes.a)
            }
            try await nodes.b.client().auth.signOut(guests[0].refreshToken)
            _ = try await nodes.signIn("b@b.c", at: nodes.a)
        }
    }

    @Test("expired sessions make room, and guests without a session are deleted")
    func sweeping() async throws {
        var limits = AuthLimits()
        (limits.guests, limits.sessionLifetime) = (2, .seconds(3_600))
        try await AuthNodes.run(limits) { nodes in
            _ = try await nodes.a.client().auth.signInAsGuest()
            nodes.clock.advance(by: .seconds(1_800))
            let retained = try await nodes.b.client().auth.signInAsGuest()
            nodes.clock.advance(by: .seconds(1_800))
            // The limit is reached, and each node may sweep once in an hour.
            #expect(try await nodes.b.client().auth.signInAsGuest().user.isGuest)
            #expect(try await nodes.a.accounts.shared?.count() == AccountCount(all: 2, guests: 2))
            #expect(try await nodes.a.client().auth.refresh(retained.refreshToken).user == retained.user)
        }
    }
}

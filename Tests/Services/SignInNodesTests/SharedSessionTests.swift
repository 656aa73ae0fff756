import TestSupport
import Testing
import Trebuchet
import TrebuchetCluster

@testable import TrebuchetServices

/// The effects at all nodes when a session ends at one node, and when the coordination store is unavailable.
@Suite struct SharedSessionTests {
    /// A client signed in at the second node with a session of the first.
    private func other(_ nodes: AuthNodes, _ address: String = "ada@b.c") async throws -> (
        grant: SessionGrant, client: TrebuchetClient
    ) {
        let grant = try await nodes.signIn(address, at: nodes.a).grant
        let client = try await nodes.b.client(token: grant.accessToken)
        #expect(try await client.caller() == grant.user.id)
        return (grant, client)
    }

    @Test("a session signed out at one node has no connections and no access at any node")
    func signedOut() async throws {
        try await AuthNodes.run { nodes in
            let (grant, client) = try await other(nodes)
            let (_, unconcerned) = try await other(nodes, "b@b.c")
            try await nodes.a.client().auth.signOut(grant.refreshToken)
            #expect(await client.losesItsRights())
            await #expect(throws: TransportError.self) { try await nodes.b.client(token: grant.accessToken) }
            await #expect(throws: TransportError.self) { try await nodes.a.client(token: grant.accessToken) }
            await #expect(throws: AuthError.sessionEnded(.elsewhere)) {
                try await nodes.b.client().auth.refresh(grant.refreshToken)
            }
            #expect(try await unconcerned.caller() != nil)
        }
    }

    @Test("a session ended by its user or by an administrator loses its authorization at all nodes")
    func ended() async throws {
        try await AuthNodes.run { nodes in
            let (grant, client) = try await other(nodes)
            let own = try await nodes.signIn("ada@b.c", at: nodes.a).client
            #expect(try await own.auth.sessions().count == 2)
            #expect(try await own.auth.endOtherSessions() == 1)
            #expect(await client.losesItsRights())
            #expect(try await own.caller() == grant.user.id)
            #expect(try await nodes.b.accounts.removeAccount("ada@b.c"))
            #expect(await own.losesItsRights())
        }
    }

    @Test("a session whose end notice is lost ends half a second later")
    func lostMessage() async throws {
        try await AuthNodes.run { nodes in
            let (grant, client) = try await other(nodes)
            nodes.b.engineRoute.set { $0.losesMessages = true }
            try await nodes.a.client().auth.signOut(grant.refreshToken)
            #expect(try await client.caller() == grant.user.id)
            // The interval between two polls.
            #expect(Set(nodes.b.alarm.asked.entries) == ["0.5 seconds"])
            nodes.b.alarm.ring()
            #expect(await client.losesItsRights())
        }
    }

    @Test("when notices are no longer retained, the sessions of all connections are checked")
    func lostNotices() async throws {
        var limits = ClusterEngineLimits()
        limits.noticesPerTable = 2
        try await AuthNodes.run(engine: limits) { nodes in
            let (grant, client) = try await other(nodes)
            let (other, unconcerned) = try await other(nodes, "b@b.c")
            nodes.b.engineRoute.set { $0.losesMessages = true }
            try await nodes.a.client().auth.signOut(grant.refreshToken)
            for _ in 0..<3 {
                let guest = try await nodes.a.client().auth.signInAsGuest()
                try await nodes.a.client().auth.signOut(guest.refreshToken)
            }
            nodes.b.alarm.ring()
            #expect(await client.losesItsRights())
            #expect(try await unconcerned.caller() == other.user.id)
            // An older token is checked, since the node cannot know its session's state.
            #expect(try await nodes.b.client(token: other.accessToken).caller() == other.user.id)
            await #expect(throws: TransportError.self) { try await nodes.b.client(token: grant.accessToken) }
            nodes.b.engineRoute.set { $0.isAway = true }
            await #expect(throws: TransportError.self) { try await nodes.b.client(token: other.accessToken) }
        }
    }

    @Test("when the coordination store has lost the last notices and has others instead, sessions are checked too")
    func unrelatedNotices() async throws {
        try await AuthNodes.run { nodes in
            let (grant, client) = try await other(nodes)
            let guest = try await nodes.a.client().auth.signInAsGuest()
            try await nodes.a.client().auth.signOut(guest.refreshToken)
            #expect(await eventually { nodes.b.accounts.connections.reason(session(of: guest)) == .elsewhere })
            // The end of a session, with a number that another change had before.
            nodes.b.engineRoute.set { $0.losesMessages = true }
            try await nodes.a.client().auth.signOut(grant.refreshToken)
            nodes.b.engineRoute.set { faults in
                faults.news = {
                    TableChangeFeed(
                        tableIncarnation: $0.tableIncarnation, head: 1, truncatedThrough: 0, [.init(1, [])],
                        isComplete: true)
                }
            }
            nodes.b.alarm.ring()
            #expect(await client.losesItsRights())
        }
    }

    private func session(of grant: SessionGrant) -> String { RefreshToken(grant.refreshToken)!.session }

    @Test(
        "a node that starts later knows the sessions ended before, and checks the others when it cannot know",
        arguments: [1, 100])
    func laterNode(noticesPerTable: Int) async throws {
        var limits = ClusterEngineLimits()
        limits.noticesPerTable = noticesPerTable
        try await AuthNodes.run(engine: limits) { nodes in
            let ended = try await nodes.signIn("ada@b.c", at: nodes.a).grant
            let retained = try await nodes.signIn("b@b.c", at: nodes.a).grant
            try await nodes.a.client().auth.signOut(ended.refreshToken)
            let guest = try await nodes.b.client().auth.signInAsGuest()
            try await nodes.b.client().auth.signOut(guest.refreshToken)
            let node = try await nodes.anotherNode()
            #expect(node.accounts.connections.hasCompleteHistory == (noticesPerTable == 100))
            await #expect(throws: TransportError.self) { try await node.client(token: ended.accessToken) }
            #expect(try await node.client(token: retained.accessToken).caller() == retained.user.id)
            await node.server.shutdown(drain: .zero)
        }
    }

    @Test("a node with an unknown outcome of a sign-out checks the session")
    func unknownOutcome() async throws {
        try await AuthNodes.run { nodes in
            let grant = try await nodes.signIn("ada@b.c", at: nodes.a).grant
            let client = try await nodes.a.client(token: grant.accessToken)
            let asking = try await nodes.a.client()
            nodes.a.engineRoute.set { $0.losesAnswers = true }
            await #expect(throws: AuthError.unavailable) { try await asking.auth.signOut(grant.refreshToken) }
            nodes.a.engineRoute.set { $0.losesAnswers = false }
            nodes.a.alarm.ring()
            #expect(await client.losesItsRights())
        }
    }

    @Test("a role granted at one node applies at all nodes, also for earlier tokens")
    func roles() async throws {
        try await AuthNodes.run { nodes in
            let (grant, client) = try await other(nodes)
            #expect(try await nodes.a.accounts.setRole("editor", of: "ada@b.c", isGranted: true) == true)
            #expect(await eventually { (try? await client.roles()) == ["editor", "user"] })
            #expect(try await nodes.b.client(token: grant.accessToken).roles() == ["editor", "user"])
            #expect(try await nodes.b.accounts.setRole("editor", of: "ada@b.c", isGranted: false) == true)
            #expect(try await client.roles() == ["user"])
            #expect(await eventually { (try? await nodes.a.client(token: grant.accessToken).roles()) == ["user"] })
        }
    }

    @Test("without its coordination store a node refuses sign-ins and keeps its sessions; later it accepts both again")
    func engineAway() async throws {
        try await AuthNodes.run { nodes in
            let (grant, client) = try await other(nodes)
            _ = try await nodes.b.client().auth.sendMagicCode(to: "b@b.c")
            nodes.b.engineRoute.set { $0.isAway = true }
            let stranger = try await nodes.b.client()
            await #expect(throws: AuthError.unavailable) { try await stranger.auth.signInAsGuest() }
            await #expect(throws: AuthError.unavailable) { try await stranger.auth.sendMagicCode(to: "b@b.c") }
            await #expect(throws: AuthError.unavailable) {
                try await stranger.auth.verifyMagicCode(email: "b@b.c", code: "000000")
            }
            await #expect(throws: AuthError.unavailable) { try await stranger.auth.refresh(grant.refreshToken) }
            await #expect(throws: AuthError.unavailable) { try await client.auth.sessions() }
            #expect(try await client.caller() == grant.user.id)
            #expect(try await nodes.b.client(token: grant.accessToken).caller() == grant.user.id)
            // The node learns of other nodes' changes once the coordination store is available again.
            try await nodes.a.client().auth.signOut(grant.refreshToken)
            #expect(try await client.caller() == grant.user.id)
            nodes.b.engineRoute.set { $0.isAway = false }
            nodes.b.alarm.ring()
            #expect(await client.losesItsRights())
            #expect(try await stranger.auth.signInAsGuest().user.isGuest)
        }
    }

    @Test("when the coordination store has lost the accounts, all sessions end and a node starts no new ones")
    func engineEmptied() async throws {
        try await AuthNodes.run { nodes in
            let (grant, client) = try await other(nodes)
            nodes.engine.loseEverything()
            // A client would discard its session when told that it has ended.
            await #expect(throws: AuthError.unavailable) {
                try await nodes.b.client().auth.refresh(grant.refreshToken)
            }
            // Detected by a change or by the next poll, whichever comes first.
            await #expect(throws: AuthError.self) { try await nodes.a.client().auth.signInAsGuest() }
            nodes.b.alarm.ring()
            #expect(await client.losesItsRights())
            await #expect(throws: AuthError.unavailable) { try await nodes.b.client().auth.signInAsGuest() }
            await #expect(throws: TransportError.self) { try await nodes.b.client(token: grant.accessToken) }
            #expect(nodes.b.lines.entries.contains { $0.contains("has lost the accounts of the cluster") })
        }
    }

    // MARK: Rates

    @Test("attempts of one host count over all nodes")
    func hosts() async throws {
        var limits = AuthLimits()
        limits.attemptsPerHost = RateLimit(callsPerSecond: 1, burst: 3)
        try await AuthNodes.run(limits) { nodes in
            for node in [nodes.a, nodes.b, nodes.a] { _ = try await node.client(from: "10.0.0.1").auth.signInAsGuest() }
            for node in [nodes.a, nodes.b] {
                await #expect(throws: AuthError.rateLimited(retryAfterMilliseconds: 1_000)) {
                    try await node.client(from: "10.0.0.1").auth.signInAsGuest()
                }
                _ = try await node.client(from: "10.0.0.2").auth.signInAsGuest()
            }
            nodes.clock.advance(by: .seconds(1))
            _ = try await nodes.b.client(from: "10.0.0.1").auth.signInAsGuest()
            await #expect(throws: AuthError.self) {
                try await nodes.a.client(from: "10.0.0.1").auth.signInAsGuest()
            }
        }
    }

    @Test("a node that has admitted the total limit by itself does not ask the coordination store")
    func asksNothing() async throws {
        var limits = AuthLimits()
        limits.attemptsPerHost = RateLimit(callsPerSecond: 1, burst: 2)
        try await AuthNodes.run(limits) { nodes in
            let client = try await nodes.a.client()
            for _ in 0..<2 { _ = try await client.auth.signInAsGuest() }
            for _ in 0..<3 {
                await #expect(throws: AuthError.rateLimited(retryAfterMilliseconds: 1_000)) {
                    try await client.auth.signInAsGuest()
                }
            }
            #expect(nodes.a.engineRoute.taken == 2)
        }
    }

    @Test("codes for one address count over all nodes, and using one resets the rate at each")
    func addresses() async throws {
        var limits = AuthLimits()
        (limits.codesPerAddressAndHost.burst, limits.codesPerAddress.burst) = (2, 4)
        try await AuthNodes.run(limits) { nodes in
            func send(_ node: AuthNode, _ host: String) async throws {
                _ = try await node.client(from: host).auth.sendMagicCode(to: "ada@b.c")
            }
            try await send(nodes.a, "10.0.0.1")
            try await send(nodes.b, "10.0.0.1")
            for node in [nodes.a, nodes.b] {
                await #expect(throws: AuthError.rateLimited(retryAfterMilliseconds: 3_600_000)) {
                    try await send(node, "10.0.0.1")
                }
            }
            let code = try nodes.mailbox.code(for: "ada@b.c")
            _ = try await nodes.b.client(from: "10.0.0.1").auth.verifyMagicCode(email: "ada@b.c", code: code)
            try await send(nodes.a, "10.0.0.1")
            try await send(nodes.b, "10.0.0.1")
            // Four codes in total, over all hosts.
            await #expect(throws: AuthError.rateLimited(retryAfterMilliseconds: 600_000)) {
                try await send(nodes.a, "10.0.0.2")
            }
        }
    }

    @Test("a node sends a limited number of concurrent requests to the coordination store and refuses the rest")
    func waiting() async throws {
        var limits = AuthLimits()
        limits.queuedRequests = 2
        try await AuthNodes.run(limits) { nodes in
            let clients = [try await nodes.a.client(), try await nodes.a.client(), try await nodes.a.client()]
            nodes.a.engineRoute.set { $0.hangs = true }
            let calls = clients.prefix(2).map { client in Task { try await client.auth.signInAsGuest() } }
            #expect(await eventually { nodes.a.engineRoute.hanging == 2 })
            await #expect(throws: AuthError.limitReached("queuedRequests")) {
                try await clients[2].auth.signInAsGuest()
            }
            nodes.a.engineRoute.set { $0.hangs = false }
            for call in calls { #expect(try await call.value.user.isGuest) }
        }
    }

    @Test("token refreshes of one host count over all nodes")
    func renewals() async throws {
        var limits = AuthLimits()
        limits.renewalsPerHost = RateLimit(callsPerSecond: 1, burst: 2)
        try await AuthNodes.run(limits) { nodes in
            var token = try await nodes.signIn("ada@b.c", at: nodes.a).grant.refreshToken
            for node in [nodes.a, nodes.b] { token = try await node.client().auth.refresh(token).refreshToken }
            let last = token
            for node in [nodes.a, nodes.b] {
                await #expect(throws: AuthError.rateLimited(retryAfterMilliseconds: 1_000)) {
                    try await node.client().auth.refresh(last)
                }
            }
        }
    }

    @Test("a code evicted at one node is invalid at all")
    func fullCodes() async throws {
        var limits = AuthLimits()
        limits.pendingCodes = 1
        try await AuthNodes.run(limits) { nodes in
            _ = try await nodes.a.client().auth.sendMagicCode(to: "ada@b.c")
            _ = try await nodes.a.client().auth.sendMagicCode(to: "b@b.c")
            let codes = try ["ada@b.c", "b@b.c"].map(nodes.mailbox.code)
            await #expect(throws: AuthError.noCode) {
                try await nodes.b.client().auth.verifyMagicCode(email: "ada@b.c", code: codes[0])
            }
            _ = try await nodes.b.client().auth.verifyMagicCode(email: "b@b.c", code: codes[1])
        }
    }
}

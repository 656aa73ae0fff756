import Foundation
import Relays
import SharedState
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices

@Trebuchet
distributed actor Lines {
    @StreamedState var texts: [String] = []
}

/// The sessions of an account, its address and its deletion.
@MainActor
@Suite(.timeLimit(.minutes(5)))
struct AccountTests {
    private func withServer(
        limits: AuthLimits = AuthLimits(), _ body: (AuthServer) async throws -> Void
    ) async throws {
        let server = try await AuthServer(limits: limits)
        do {
            try await body(server)
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    private func signIn(_ client: TrebuchetClient, _ email: String, at server: AuthServer) async throws -> SessionGrant
    {
        _ = try await client.auth.sendMagicCode(to: email)
        return try await client.auth.verifyMagicCode(
            email: email, code: try #require(server.mailbox.code(for: email)))
    }

    private func auth(_ backend: TrebuchetBackend) -> Shared<AuthSession> {
        SharedStore.$current.withValue(SharedStore()) { backend.withCurrent { Shared(.instantAuth) } }
    }

    private func isRefused(_ client: TrebuchetClient) async -> Bool {
        do {
            _ = try await client.caller()
            return false
        } catch {
            return (error as? TrebuchetError)?.code == .unauthenticated
        }
    }

    // MARK: Sessions

    @Test("a user sees only their own sessions, and can end one or all others")
    func sessions() async throws {
        try await withServer { server in
            var clients: [TrebuchetClient] = []
            for _ in 0..<4 { clients.append(try await server.client()) }
            let stranger = try await clients[3].auth.signInAsGuest()
            var grants: [SessionGrant] = []
            for client in clients[..<3] {
                grants.append(try await signIn(client, "ada@b.c", at: server))
                server.time.advance(by: .seconds(60))
            }
            try await clients[1].auth.labelSession("Ada's phone")
            let listed = try await clients[2].auth.sessions()
            #expect(listed.map(\.isCurrent) == [true, false, false])
            #expect(listed.map(\.label) == [nil, "Ada's phone", nil])
            let ages = listed.map { Int(server.time.now / 1000) - Int($0.created?.timeIntervalSince1970 ?? 0) }
            #expect(ages == [60, 120, 180])
            _ = try await clients[0].auth.refresh(grants[0].refreshToken)
            let renewed = try await clients[2].auth.sessions()[2].lastRenewed
            #expect(Int64(renewed.timeIntervalSince1970 * 1000) == server.time.now)

            // A session ID is no secret: no token contains it, and it ends no session of others.
            let theirs = try #require(try await clients[3].auth.sessions().first)
            #expect(theirs.isCurrent && !stranger.refreshToken.contains(theirs.id))
            for id in [theirs.id, "", "x", grants[0].refreshToken] {
                await #expect(throws: AuthError.noSuchSession) { try await clients[2].auth.endSession(id) }
            }
            try await clients[2].auth.endSession(listed[2].id)
            #expect(await eventually { await isRefused(clients[0]) })
            #expect(try await clients[1].caller() == grants[1].user.id)
            #expect(try await clients[2].auth.endOtherSessions() == 1)
            #expect(await eventually { await isRefused(clients[1]) })
            #expect(try await clients[2].auth.endOtherSessions() == 0)
            #expect(try await clients[2].caller() == grants[2].user.id)
            #expect(try await clients[3].caller() == stranger.user.id)
            await #expect(throws: AuthError.sessionEnded(.elsewhere)) {
                try await clients[0].auth.refresh(grants[0].refreshToken)
            }
            await #expect(throws: AuthError.notSignedIn) { try await clients[0].auth.sessions() }
            for client in clients { await client.close() }
        }
    }

    @Test(
        "a label is short and has no control characters",
        arguments: ["a\nb", "a\u{0}", "\u{202E}x", String(repeating: "x", count: 65)])
    func labels(_ label: String) async throws {
        try await withServer { server in
            let client = try await server.client()
            await #expect(throws: AuthError.notSignedIn) { try await client.auth.labelSession("x") }
            let grant = try await client.auth.signInAsGuest()
            await #expect(throws: AuthError.invalidLabel) { try await client.auth.labelSession(label) }
            try await client.auth.labelSession("Ä")
            // The label is kept by the refreshed session, and by the next session on this client.
            _ = try await client.auth.refresh(grant.refreshToken)
            _ = try await signIn(client, "ada@b.c", at: server)
            #expect(try await client.auth.sessions().map(\.label) == ["Ä"])
            try await client.auth.labelSession("")
            #expect(try await client.auth.sessions().map(\.label) == [nil])
            await client.close()
        }
    }

    @Test(
        "a client whose session was ended elsewhere shows this immediately, with the reason",
        arguments: TestLink.allCases)
    func notifiedAtOnce(link: TestLink) async throws {
        try await withServer { server in
            let (here, there) = (server.backend(link), server.backend(link))
            let (authHere, authThere) = (auth(here), auth(there))
            for auth in [authHere, authThere] {
                try await auth.sendMagicCode(to: "ada@b.c")
                try await auth.verifyMagicCode(
                    email: "ada@b.c", code: try #require(server.mailbox.code(for: "ada@b.c")))
            }
            let connections = SharedStore.$current.withValue(SharedStore()) {
                there.withCurrent { SharedReader(.instantConnection) }
            }
            for await state in connections.updates where state == .authenticated(authHere.wrappedValue.user!) { break }
            #expect(try await authHere.endOtherSessions() == 1)
            for await session in authThere.updates where session.state == .unauthenticated { break }
            #expect(authThere.wrappedValue.sessionEnd == .elsewhere)
            for await state in connections.updates where state == .connected { break }
            #expect(await isRefused(there.client))
            _ = try await authThere.signInAsGuest()
            #expect(authThere.wrappedValue.sessionEnd == nil && authThere.wrappedValue.isGuest)
            #expect(try await there.client.caller() == authThere.wrappedValue.user?.id)
            for backend in [here, there] { await backend.client.close() }
        }
    }

    @Test("the streams of a connection end with its session, and none starts afterwards")
    func streams() async throws {
        try await withServer { server in
            await server.server.expose(Lines(actorSystem: server.server.actorSystem), as: "lines")
            let (here, there) = (try await server.client(), try await server.client())
            _ = try await signIn(here, "ada@b.c", at: server)
            _ = try await signIn(there, "ada@b.c", at: server)
            let stream = await (try there.resolve(Lines.self, id: "lines")).observeTexts()
            var iterator = stream.makeAsyncIterator()
            #expect(await iterator.next() == [])
            _ = try await here.auth.endOtherSessions()
            #expect(await iterator.next() == nil)
            let late = await (try there.resolve(Lines.self, id: "lines")).observeTexts()
            var lateIterator = late.makeAsyncIterator()
            #expect(await lateIterator.next() == nil)
            for client in [here, there] { await client.close() }
        }
    }

    // MARK: The address

    @Test("an address is changed with a code sent to the new one, and the old one is notified")
    func address() async throws {
        try await withServer { server in
            let backend = server.backend()
            let auth = auth(backend)
            await #expect(throws: AuthError.notSignedIn) { try await auth.sendAddressCode(to: "new@b.c") }
            try await auth.sendMagicCode(to: "ada@b.c")
            let ada = try await auth.verifyMagicCode(
                email: "ada@b.c", code: try #require(server.mailbox.code(for: "ada@b.c")))
            try await auth.sendAddressCode(to: "New@b.c")
            let code = try #require(server.mailbox.code(for: "new@b.c"))
            // The code is valid only for that account and that purpose.
            let stranger = try await server.client()
            await #expect(throws: AuthError.noCode) {
                try await stranger.auth.verifyMagicCode(email: "new@b.c", code: code)
            }
            _ = try await stranger.auth.signInAsGuest()
            await #expect(throws: AuthError.noCode) {
                try await stranger.auth.changeAddress(to: "new@b.c", code: code)
            }
            let user = try await auth.changeAddress(to: "new@b.c", code: code)
            #expect(user == User(id: ada.id, email: "new@b.c") && auth.wrappedValue.user == user)
            #expect(server.mailbox.notices == ["ada@b.c: addressChanged(to: \"new@b.c\")"])
            #expect(try await backend.client.resolve(ServiceCallerReporter.self, id: "mirror").email() == "new@b.c")
            // The old address is free, and the new one belongs to the account.
            let other = try await signIn(stranger, "ada@b.c", at: server)
            #expect(other.user.id != ada.id)
            #expect(try await signIn(stranger, "new@b.c", at: server).user == user)
            await stranger.close()
            await backend.client.close()
        }
    }

    @Test("an address of another account is refused, and only the reader of its mail learns this")
    func takenAddress() async throws {
        try await withServer { server in
            let (ada, bob) = (try await server.client(), try await server.client())
            _ = try await signIn(ada, "ada@b.c", at: server)
            let before = try await signIn(bob, "bob@b.c", at: server)
            let answer = try await bob.auth.sendAddressCode(to: "ada@b.c")
            #expect(try await bob.auth.sendAddressCode(to: "nobody@b.c") == answer)
            let code = try #require(server.mailbox.code(for: "ada@b.c"))
            await #expect(throws: AuthError.addressTaken) {
                try await bob.auth.changeAddress(to: "ada@b.c", code: code)
            }
            #expect(try await bob.caller() == before.user.id)
            #expect(server.mailbox.notices.isEmpty)
            for client in [ada, bob] { await client.close() }
        }
    }

    // MARK: Deletion

    @Test("a user who has just signed in can delete the account: its sessions end, and its address becomes free")
    func delete() async throws {
        try await withServer { server in
            let backend = server.backend()
            let auth = auth(backend)
            try await auth.sendMagicCode(to: "ada@b.c")
            let ada = try await auth.verifyMagicCode(
                email: "ada@b.c", code: try #require(server.mailbox.code(for: "ada@b.c")))
            let other = try await server.client()
            let second = try await signIn(other, "ada@b.c", at: server)
            try await auth.deleteAccount()
            #expect(auth.wrappedValue.state == .unauthenticated && auth.wrappedValue.sessionEnd == nil)
            #expect(try await backend.client.caller() == nil)
            #expect(await isRefused(other))
            await #expect(throws: AuthError.sessionEnded(.accountDeleted)) {
                try await other.auth.refresh(second.refreshToken)
            }
            #expect(try await server.store.names("") == ["secret"], "no data remains")
            #expect(server.deletions.users.entries == [ada.id])
            #expect(try await signIn(other, "ada@b.c", at: server).user.id != ada.id)
            await other.close()
            await backend.client.close()
        }
    }

    @Test("an old session cannot change the account's address; a guest can set one at any time")
    func staleSession() async throws {
        try await withServer { server in
            let ada = try await server.client()
            let grant = try await signIn(ada, "ada@b.c", at: server)
            server.time.advance(by: .seconds(600))
            let thief = try await server.client()
            _ = try await thief.auth.refresh(grant.refreshToken)
            await #expect(throws: AuthError.notFresh) { try await thief.auth.sendAddressCode(to: "eve@b.c") }
            #expect(server.mailbox.code(for: "eve@b.c") == nil)
            _ = try await signIn(ada, "ada@b.c", at: server)
            _ = try await ada.auth.sendAddressCode(to: "new@b.c")
            let guest = try await server.client()
            _ = try await guest.auth.signInAsGuest()
            server.time.advance(by: .seconds(6000))
            _ = try await guest.auth.sendAddressCode(to: "guest@b.c")
            for client in [ada, thief, guest] { await client.close() }
        }
    }

    @Test("deletion in an old session needs a code for the account's address")
    func deleteLater() async throws {
        try await withServer { server in
            let client = try await server.client()
            let grant = try await signIn(client, "ada@b.c", at: server)
            server.time.advance(by: .seconds(600))
            // A refresh does not count as a sign-in.
            _ = try await client.auth.refresh(grant.refreshToken)
            await #expect(throws: AuthError.notFresh) { try await client.auth.deleteAccount(code: nil) }
            _ = try await client.auth.sendMagicCode(to: "eve@b.c")
            let theirs = try #require(server.mailbox.code(for: "eve@b.c"))
            await #expect(throws: AuthError.noCode) { try await client.auth.deleteAccount(code: theirs) }
            _ = try await client.auth.sendMagicCode(to: "ada@b.c")
            let code = try #require(server.mailbox.code(for: "ada@b.c"))
            #expect(server.deletions.users.entries.isEmpty)
            try await client.auth.deleteAccount(code: code)
            #expect(try await client.caller() == nil)
            await #expect(throws: AuthError.notSignedIn) { try await client.auth.deleteAccount(code: nil) }
            // A guest has no means to sign in again.
            _ = try await client.auth.signInAsGuest()
            server.time.advance(by: .seconds(6000))
            try await client.auth.deleteAccount(code: nil)
            #expect(try await server.store.names("") == ["secret"])
            await client.close()
        }
    }

    @Test("when the app's data cannot be deleted, the account is kept")
    func deletionFails() async throws {
        try await withServer { server in
            let client = try await server.client()
            let grant = try await signIn(client, "ada@b.c", at: server)
            server.deletions.part.update(.broken)
            await #expect(throws: AuthError.notDeleted) { try await client.auth.deleteAccount(code: nil) }
            #expect(try await client.caller() == grant.user.id)
            server.deletions.part.update(.working)
            try await client.auth.deleteAccount(code: nil)
            #expect(server.deletions.users.entries == [grant.user.id])
            await client.close()
        }
    }

    // MARK: With callbacks

    @Test("the account methods call back in order, with their outcomes")
    func callbacks() async throws {
        try await withServer { server in
            let backend = server.backend()
            let auth = auth(backend)
            try await auth.sendMagicCode(to: "ada@b.c")
            try await auth.verifyMagicCode(
                email: "ada@b.c", code: try #require(server.mailbox.code(for: "ada@b.c")))
            let journal = Journal()
            func callbacks<Output>(
                _ name: String, _ expected: @escaping @MainActor (Output) -> Bool
            ) -> (
                attempt: @MainActor () -> Void, success: @MainActor (Output) -> Void,
                failure: @MainActor (any Error) -> Void, settled: @MainActor (Result<Output, any Error>) -> Void
            ) {
                (
                    { journal.record("\(name) attempt") },
                    { journal.record("\(name) \(expected($0) ? "success" : "wrong")") },
                    { journal.record("\(name) \($0)") }, { _ in journal.record("\(name) settled") }
                )
            }
            func expect(_ name: String, _ outcome: String = "success") async {
                await journal.wait(for: "\(name) settled")
                let entries = journal.entries.filter { $0.hasPrefix(name + " ") }
                #expect(entries == ["\(name) attempt", "\(name) \(outcome)", "\(name) settled"])
            }
            let list: (_, _, _, _) = callbacks("list") { (sessions: [SessionInfo]) in sessions.count == 1 }
            auth.sessions(onAttempt: list.0, onSuccess: list.1, onError: list.2, onSettled: list.3)
            await expect("list")
            let others: (_, _, _, _) = callbacks("others") { (count: Int) in count == 0 }
            auth.endOtherSessions(onAttempt: others.0, onSuccess: others.1, onError: others.2, onSettled: others.3)
            await expect("others")
            let label: (_, _, _, _) = callbacks("label") { (_: Void) in true }
            auth.labelSession(
                "x", onAttempt: label.0, onSuccess: { label.1(()) }, onError: label.2, onSettled: label.3)
            await expect("label")
            let end: (_, _, _, _) = callbacks("end") { (_: Void) in true }
            auth.endSession("x", onAttempt: end.0, onSuccess: { end.1(()) }, onError: end.2, onSettled: end.3)
            await expect("end", "the account does not have this session")
            let send: (_, _, _, _) = callbacks("send") { (sent: SendMagicCodeResponse) in sent.validSeconds == 600 }
            auth.sendAddressCode(
                to: "new@b.c", onAttempt: send.0, onSuccess: send.1, onError: send.2, onSettled: send.3)
            await expect("send")
            let change: (_, _, _, _) = callbacks("change") { (user: User) in auth.wrappedValue.user == user }
            auth.changeAddress(
                to: "new@b.c", code: try #require(server.mailbox.code(for: "new@b.c")), onAttempt: change.0,
                onSuccess: change.1, onError: change.2, onSettled: change.3)
            await expect("change")
            let token: (_, _, _, _) = callbacks("token") { (_: User) in false }
            auth.signIn(
                idToken: "x", provider: "none", onAttempt: token.0, onSuccess: token.1, onError: token.2,
                onSettled: token.3)
            await expect("token", "unknown provider")
            let delete: (_, _, _, _) = callbacks("delete") { (_: Void) in !auth.wrappedValue.isSignedIn }
            auth.deleteAccount(
                onAttempt: delete.0, onSuccess: { delete.1(()) }, onError: delete.2, onSettled: delete.3)
            await expect("delete")
            await backend.client.close()
        }
    }
}

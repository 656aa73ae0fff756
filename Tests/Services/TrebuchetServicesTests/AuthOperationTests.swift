import SharedState
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices

@MainActor
@Suite(.timeLimit(.minutes(5)))
struct AuthOperationTests {
    enum Method: CaseIterable, Sendable { case signInAsGuest, sendMagicCode, verifyMagicCode, signOut }

    /// One server, one of its backends, and the shared value.
    @MainActor
    private final class Fixture {
        let server: AuthServer
        let backend: TrebuchetBackend
        let auth: Shared<AuthSession>
        let journal = Journal()

        init() async throws {
            server = try await AuthServer()
            let backend = server.backend(.local)
            self.backend = backend
            auth = SharedStore.$current.withValue(SharedStore()) { backend.withCurrent { Shared(.trebuchetAuth) } }
        }

        /// Establishes the conditions for a method to succeed.
        func prepare(_ method: Method) async throws {
            switch method {
            case .signInAsGuest, .sendMagicCode: break
            case .verifyMagicCode: try await auth.sendMagicCode(to: "ada@b.c")
            case .signOut: try await auth.signInAsGuest()
            }
        }

        /// Establishes the conditions for a method to fail.
        func spoil(_ method: Method) async throws {
            switch method {
            case .signInAsGuest, .sendMagicCode: server.part.update(.broken)
            case .verifyMagicCode, .signOut: break
            }
        }

        func begin(_ method: Method, _ name: String = "") {
            let note: @MainActor (String) -> Void = { [journal, auth] in
                journal.record("\(name)\($0) \(auth.wrappedValue.operationStatus)")
            }
            let onAttempt: @MainActor () -> Void = { note("attempt") }
            let onError: @MainActor (any Error) -> Void = { note("\($0)") }
            switch method {
            case .signInAsGuest:
                auth.signInAsGuest(
                    onAttempt: onAttempt,
                    onSuccess: { [auth] in note(auth.wrappedValue.user == $0 && $0.isGuest ? "success" : "wrong user")
                    },
                    onError: onError, onSettled: { note((try? $0.get()) == nil ? "failed" : "settled") })
            case .sendMagicCode:
                auth.sendMagicCode(
                    to: "ada@b.c", onAttempt: onAttempt,
                    onSuccess: { note($0.validSeconds == 600 ? "success" : "wrong") }, onError: onError,
                    onSettled: { note((try? $0.get()) == nil ? "failed" : "settled") })
            case .verifyMagicCode:
                auth.verifyMagicCode(
                    email: "Ada@b.c", code: server.mailbox.code(for: "ada@b.c") ?? "none", onAttempt: onAttempt,
                    onSuccess: { [auth] in
                        note(auth.wrappedValue.user == $0 && $0.email == "ada@b.c" ? "success" : "wrong user")
                    },
                    onError: onError, onSettled: { note((try? $0.get()) == nil ? "failed" : "settled") })
            case .signOut:
                auth.signOut(
                    onAttempt: onAttempt,
                    onSuccess: { [auth] in note(auth.wrappedValue.state == .unauthenticated ? "success" : "wrong state")
                    },
                    onError: onError, onSettled: { note((try? $0.get()) == nil ? "failed" : "settled") })
            }
        }

        func stop() async {
            server.part.update(.working)
            await backend.client.close()
            await server.stop()
        }
    }

    private func withFixture(_ body: (Fixture) async throws -> Void) async throws {
        let fixture = try await Fixture()
        do {
            try await body(fixture)
        } catch {
            await fixture.stop()
            throw error
        }
        await fixture.stop()
    }

    @Test(
        "each method calls back at its start, succeeds with the value updated, and settles", arguments: Method.allCases)
    func success(_ method: Method) async throws {
        try await withFixture { fixture in
            try await fixture.prepare(method)
            fixture.begin(method)
            #expect(fixture.journal.entries == ["attempt pending"])
            await fixture.journal.wait(for: "settled success")
            #expect(fixture.journal.entries == ["attempt pending", "success success", "settled success"])
            #expect(fixture.auth.wrappedValue.isSuccess && !fixture.auth.wrappedValue.isError)
        }
    }

    @Test("the error of a failed method is in its callbacks and in the value", arguments: Method.allCases)
    func failure(_ method: Method) async throws {
        try await withFixture { fixture in
            try await fixture.spoil(method)
            fixture.begin(method)
            await fixture.journal.wait(for: "failed error")
            let error: AuthError =
                switch method {
                case .signInAsGuest: .unavailable
                case .sendMagicCode: .mailNotSent
                case .verifyMagicCode: .noCode
                case .signOut: .notSignedIn
                }
            #expect(fixture.journal.entries == ["attempt pending", "\(error) error", "failed error"])
            #expect(fixture.auth.wrappedValue.error as? AuthError == error)
            #expect(fixture.auth.wrappedValue.state == .unauthenticated)
            // The error stays during the next attempt, and a success clears it.
            fixture.server.part.update(.paused)
            fixture.begin(.signInAsGuest, "next ")
            #expect(fixture.auth.wrappedValue.isError && fixture.auth.wrappedValue.isLoading)
            fixture.server.part.update(.working)
            await fixture.journal.wait(for: "next settled success")
            #expect(!fixture.auth.wrappedValue.isError)
        }
    }

    @Test(
        "a reset during a call detaches it from status and error; its callbacks still run once",
        arguments: Method.allCases)
    func reset(_ method: Method) async throws {
        try await withFixture { fixture in
            try await fixture.prepare(method)
            fixture.server.part.update(.paused)
            fixture.begin(method)
            #expect(fixture.auth.wrappedValue.isLoading)
            fixture.auth.reset()
            #expect(fixture.auth.wrappedValue.isIdle)
            fixture.server.part.update(.working)
            await fixture.journal.wait(for: "settled idle")
            #expect(fixture.journal.entries == ["attempt pending", "success idle", "settled idle"])
            #expect(fixture.auth.wrappedValue.isIdle && !fixture.auth.wrappedValue.isError)
        }
    }

    @Test("each of several overlapping calls has its callbacks once, and the latest one sets the status")
    func overlapping() async throws {
        try await withFixture { fixture in
            fixture.server.part.update(.paused)
            fixture.begin(.signInAsGuest, "a ")
            fixture.begin(.verifyMagicCode, "b ")
            fixture.server.part.update(.working)
            await fixture.journal.wait { entries in
                entries.count { $0.contains("settled") || $0.contains("failed") } == 2
            }
            #expect(fixture.journal.entries.count == 6)
            #expect(fixture.auth.wrappedValue.error as? AuthError == .noCode)
            #expect(fixture.auth.wrappedValue.operationStatus == .error)
            #expect(fixture.auth.wrappedValue.isGuest, "the effect of an older call remains")
        }
    }

    @Test("a value without a key uses the current backend, and contains the result before the callbacks run")
    func withoutKey() async throws {
        try await withFixture { fixture in
            let auth = Shared(value: AuthSession())
            let seen = Journal()
            let call = fixture.backend.withCurrent {
                auth.signInAsGuest(onSuccess: { seen.record(auth.wrappedValue.user == $0 ? "the user" : "nobody") })
            }
            let user = try await call.value
            #expect(seen.entries == ["the user"])
            #expect(auth.wrappedValue.state == .guest(user))
        }
    }

    @Test("a method without callbacks changes the value, and fails without a backend")
    func bare() async throws {
        try await withFixture { fixture in
            let begin = { fixture.auth.signInAsGuest() }
            let user = try await begin().value
            #expect(fixture.auth.wrappedValue.state == .guest(user))
            try await fixture.auth.signOut()
            #expect(!fixture.auth.wrappedValue.isSignedIn)
        }
        let nobody = SharedStore.$current.withValue(SharedStore()) { Shared(.trebuchetAuth) }
        await #expect(throws: AuthError.withoutBackend) { try await nobody.signInAsGuest() }
        #expect(nobody.wrappedValue.state == .unauthenticated)
        #expect(nobody.loadError as? AuthError == .withoutBackend)
    }

    @Test("cancelling the task of the async form settles the operation")
    func cancelled() async throws {
        try await withFixture { fixture in
            fixture.server.part.update(.paused)
            let task = Task { try await fixture.auth.signInAsGuest() }
            #expect(await eventually { fixture.auth.wrappedValue.isLoading })
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(fixture.auth.wrappedValue.operationStatus == .error)
        }
    }
}

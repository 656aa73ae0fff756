import Foundation
import SharedState
import Synchronization
import Testing
import Trebuchet
import TrebuchetServices

/// A sign-in screen as plain main-actor code instead of a view.
@MainActor
private final class SignInScreen {
    enum Screen { case home }

    @Shared(.instantAuth) private var auth: AuthSession
    var navigationPath: [Screen] = []
    var shownError: (any Error)?
    var isFormEnabled = true
    var log: [String] = []

    var body: [String] {
        var lines: [String] = []
        switch auth.state {
        case .loading:
            lines.append("Loading...")
        case .unauthenticated:
            lines.append("Sign In as Guest")
        case .guest(let user):
            lines.append("Welcome, Guest \(user.id)")
        case .authenticated(let user):
            lines.append("Welcome, \(user.email ?? "User")")
        }
        if auth.isLoading {
            lines.append("…")
        }
        if let error = auth.error {
            lines.append("Error: \(error.localizedDescription)")
        }
        return lines
    }

    func dismiss() { $auth.reset() }

    func signInButton() {
        $auth.signInAsGuest()
    }

    func signInWithNavigation() {
        $auth.signInAsGuest(
            onAttempt: {
                self.navigationPath.append(.home)
            },
            onSuccess: { user in
                self.log.append("Signed in as \(user.id)")
            },
            onError: { error in
                self.navigationPath.removeLast()
                self.shownError = error
            }
        )
    }

    func send(to email: String) {
        isFormEnabled = false
        $auth.sendMagicCode(
            to: email,
            onSettled: { result in
                self.isFormEnabled = true
                self.log.append((try? result.get()) == nil ? "not sent" : "sent")
            }
        )
    }

    func verify(email: String, code: String) { $auth.verifyMagicCode(email: email, code: code) }
    func signOut() { $auth.signOut() }

    /// Returns when the screen shows a line with this prefix.
    func wait(for line: String) async {
        for await _ in $auth.updates where body.contains(where: { $0.hasPrefix(line) }) && !auth.isLoading { return }
    }
}

@MainActor
@Suite(.timeLimit(.minutes(5)))
struct AuthExamples {
    @Test("the examples of signing in behave as documented")
    func screen() async throws {
        let codes = Mutex<[String]>([])
        let accounts = try await Accounts(mailer: ClosureMailer { code, _ in codes.withLock { $0.append(code) } })
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0), access: accounts.accessPolicy)
        await server.expose(AuthService(accounts, actorSystem: server.actorSystem), as: AuthService.name)
        let backend = TrebuchetBackend(transport: .local(server))
        let screen = SharedStore.$current.withValue(SharedStore()) { backend.withCurrent { SignInScreen() } }
        #expect(screen.body == ["Sign In as Guest"])
        screen.signInWithNavigation()
        #expect(screen.navigationPath == [.home])
        await screen.wait(for: "Welcome, Guest")
        screen.send(to: "ada@example.org")
        while !screen.isFormEnabled { await Task.yield() }
        screen.verify(email: "ada@example.org", code: try #require(codes.withLock { $0.last }))
        await screen.wait(for: "Welcome, ada@example.org")
        screen.signOut()
        await screen.wait(for: "Sign In as Guest")
        screen.signOut()
        await screen.wait(for: "Error: not signed in")
        screen.dismiss()
        #expect(screen.body == ["Sign In as Guest"])
        screen.signInButton()
        await screen.wait(for: "Welcome, Guest")
        #expect(screen.log.last == "sent" && screen.shownError == nil)
        await backend.client.close()
        await server.shutdown(drain: .zero)
    }
}

internal import Relays
internal import Synchronization
internal import TrebuchetClient

/// Manages the session of a backend: sign-in and sign-out, storage, renewal, and tokens for connections.
///
/// A session is renewed over a separate, short connection. So each connection of the client is signed in from the start, and
/// renewal never waits for a connection that itself waits for a token.
actor ClientSession {
    /// A client that the app has created gets no token from this object; each of its connections is signed in by a call.
    private enum Connections {
        case owned(any ClientTransport)
        case others
    }

    private struct TokenState {
        /// Weak, because the client retains this object through its token function.
        weak var client: TrebuchetClient?
        /// Tasks that follow the client's connections.
        var observationTasks: [Task<Void, Never>] = []
        weak var observer: (any AccountObserver)?
    }

    /// The session status. A relay, so that no reader sees an older state after a newer one.
    nonisolated let states: StateRelay<SessionStatus>
    /// Notifies rooms and queries of sign-ins, after which they may be authorized.
    nonisolated let signIns = StateRelay(SignInCalls())
    /// The error with which the stored credential could not be read at the start.
    nonisolated let loadFailure: (any Error)?
    /// The user of the stored credential, until the server has confirmed the session.
    private nonisolated let restored: User?

    private let credentials: any CredentialStore
    private let connections: Connections
    private let sleep: @Sendable (Duration) async throws -> Void
    private let currentToken = Mutex(TokenState())
    /// Held by the operation that signs in or out.
    private let turn = AsyncBinarySemaphore()

    /// The access token for new connections; nil when there is none, or it is about to expire.
    private var accessToken: String?
    /// A credential that could not be stored.
    private var unsaved: Credential?
    private var renewal: Task<Void, any Error>?
    private var timer: Task<Void, Never>?
    /// Counts sign-ins and sign-outs: the result of a renewal that began before one is ignored.
    private var changeCount = 0

    /// Creates a keeper for a client that is made with `token()`.
    ///
    /// - Parameter sleep: waits between renewals.
    init(
        transport: any ClientTransport, credentials: any CredentialStore,
        sleep: @escaping @Sendable (Duration) async throws -> Void
    ) {
        self.credentials = credentials
        self.sleep = sleep
        connections = .owned(transport)
        do {
            restored = try credentials.load()?.user
            states = StateRelay(SessionStatus(restored == nil ? .unauthenticated : .loading))
            loadFailure = nil
        } catch {
            restored = nil
            states = StateRelay(SessionStatus(.unauthenticated))
            loadFailure = error
        }
    }

    /// Creates a keeper for a client of the app: nothing is stored beyond the lifetime of this object.
    init() {
        credentials = InMemoryCredentialStore()
        sleep = { try await Task.sleep(for: $0) }
        connections = .others
        restored = nil
        states = StateRelay(SessionStatus(.unauthenticated))
        loadFailure = nil
    }

    deinit {
        timer?.cancel()
        for observer in currentToken.withLock({ $0.observationTasks }) { observer.cancel() }
    }

    /// Sets the client. It must be called once, before any other method.
    nonisolated func setClient(_ client: TrebuchetClient) {
        let revocations = client.revocations.stream(after: 1)
        var observationTasks = [
            Task { [weak self] in
                for await _ in revocations { try? await self?.renewOverClient() }
            }
        ]
        if case .others = connections {
            let connectionStates = client.connectionState.stream
            observationTasks.append(
                Task { [weak self] in
                    for await state in connectionStates where state == .connected { try? await self?.renewOverClient() }
                })
        }
        currentToken.withLock { contents in
            contents.client = client
            contents.observationTasks = observationTasks
        }
    }

    private nonisolated var client: TrebuchetClient? { currentToken.withLock { $0.client } }

    /// Sets the object that is notified of account changes.
    nonisolated func report(to observer: any AccountObserver) { currentToken.withLock { $0.observer = observer } }

    /// The account that owns current writes and results.
    nonisolated var account: ClientAccount {
        let state = states.currentValue.state
        if let user = state.user ?? (state == .loading ? restored : nil) { return .user(user.id) }
        return if case .owned = connections { .signedOut } else { .client }
    }

    // MARK: Operations

    func signInAsGuest() async throws -> User { try await signIn { try await $0.signInAsGuest() } }

    func sendMagicCode(to email: String) async throws -> SendMagicCodeResponse {
        try await service().sendMagicCode(to: email)
    }

    func verifyMagicCode(email: String, code: String) async throws -> User {
        try await signIn { try await $0.verifyMagicCode(email: email, code: code) }
    }

    func signIn(idToken: String, provider: String, nonce: String?) async throws -> User {
        try await signIn { try await $0.signIn(idToken: idToken, provider: provider, nonce: nonce) }
    }

    func signOut() async throws {
        try await turn.withLock(isolation: self) {
            guard let credential = try credential() else { throw AuthError.notSignedIn }
            await sendWrites()
            do {
                try await service().signOut(credential.refreshToken)
            } catch AuthError.sessionEnded {
                // The session has already ended, which is the desired state.
            }
            changeCount += 1
            try removeCredential(nil)
        }
    }

    // MARK: The account

    func sessions() async throws -> [SessionInfo] { try await asUser { try await $0.sessions() } }
    func endSession(_ id: String) async throws { try await asUser { try await $0.endSession(id) } }
    func endOtherSessions() async throws -> Int { try await asUser { try await $0.endOtherSessions() } }
    func labelSession(_ label: String) async throws { try await asUser { try await $0.labelSession(label) } }

    func sendAddressCode(to email: String) async throws -> SendMagicCodeResponse {
        try await asUser { try await $0.sendAddressCode(to: email) }
    }

    func changeAddress(to email: String, code: String) async throws -> User {
        try await turn.withLock(isolation: self) {
            let user = try await asUser { try await $0.changeAddress(to: email, code: code) }
            // The token contains the previous address.
            accessToken = nil
            if var credential = try? credential() {
                credential.user = user
                storeCredential(credential)
            }
            publishStatus(SessionStatus(AuthState(user)))
            return user
        }
    }

    func deleteAccount(code: String?) async throws {
        try await turn.withLock(isolation: self) {
            try await asUser { try await $0.deleteAccount(code: code) }
            changeCount += 1
            try removeCredential(nil)
        }
    }

    /// Calls the service over the client's connection, which must be signed in.
    private func asUser<Result: Sendable>(_ call: (RemoteAuth) async throws -> Result) async throws -> Result {
        guard try credential() != nil else { throw AuthError.notSignedIn }
        return try await call(try service())
    }

    private func signIn(_ call: (RemoteAuth) async throws -> SessionGrant) async throws -> User {
        signIns.update { $0.begun += 1 }
        defer { signIns.update { $0.ended += 1 } }
        return try await turn.withLock(isolation: self) {
            let service = try service()
            await sendWrites()
            let grant = try await call(service)
            do {
                try credentials.save(grant.credential)
            } catch {
                // A sign-in that would not survive the process counts as failed, so the server should end its session too.
                try? await service.signOut(grant.refreshToken)
                throw error
            }
            changeCount += 1
            unsaved = nil
            accept(grant)
            return grant.user
        }
    }

    /// Lets the follower send pending writes while their author is still signed in.
    private func sendWrites() async {
        let observer = currentToken.withLock { $0.observer }
        guard let client, let observer else { return }
        await observer.waitUntilSent(client, within: .seconds(30))
    }

    private func service() throws -> RemoteAuth {
        guard let client else { throw TrebuchetError(.unavailable, "the backend was released") }
        client.connectIfNeeded()
        return try client.resolve(RemoteAuth.self, id: ServiceNames.auth)
    }

    // MARK: Tokens

    /// Returns the token for a new connection of the client; empty when no user is signed in.
    func token() async throws -> String {
        if case .connecting(_, let error?) = client?.connectionState.currentValue, error.code == .handshake {
            // The server has rejected the token, whatever the clock says: it may have another key.
            accessToken = nil
        }
        if let accessToken { return accessToken }
        try await renew()
        return accessToken ?? ""
    }

    /// Renews the session; concurrent calls share one renewal.
    private func renew() async throws {
        if let renewal { return try await renewal.value }
        let task = Task { try await renewOnce() }
        renewal = task
        defer { renewal = nil }
        try await task.value
    }

    private func renewOnce() async throws {
        guard case .owned(let transport) = connections else { return }
        let client = shortClient(transport)
        do {
            try await renew(over: client) { try await client.connect() }
        } catch {
            if case .loading = states.currentValue.state, let user = try? credential()?.user {
                publishStatus(SessionStatus(AuthState(user)))
            }
            await client.close()
            throw error
        }
        await client.close()
    }

    /// Returns a client that is always anonymous; nil when connections are not made here.
    nonisolated func anonymousClient() -> TrebuchetClient? {
        guard case .owned(let transport) = connections else { return nil }
        return shortClient(transport)
    }

    /// True when this object authenticates the connections.
    nonisolated var isOwnerOfConnections: Bool { if case .owned = connections { true } else { false } }

    /// Creates a client for a few calls, without a token.
    private nonisolated func shortClient(_ transport: any ClientTransport) -> TrebuchetClient {
        let client = TrebuchetClient(transport: transport, options: Self.shortOptions)
        client.registerServiceErrors()
        return client
    }

    private static var shortOptions: TrebuchetClient.Options {
        var options = TrebuchetClient.Options()
        options.reconnect = .never
        options.whileDisconnected = .fail
        return options
    }

    /// Renews over the client's connection: one without a token, or one whose session has ended according to the server.
    private func renewOverClient() async throws {
        guard let client, states.currentValue.state.isSignedIn else { return }
        signIns.update { $0.begun += 1 }
        defer { signIns.update { $0.ended += 1 } }
        try await renew(over: client) {}
    }

    private func renew(over client: TrebuchetClient, connect: () async throws -> Void) async throws {
        // Read each time, because another process may have renewed it.
        guard var credential = try credential() else {
            accessToken = nil
            // Another process has signed out.
            if states.currentValue.state != .unauthenticated { forgetUser(.elsewhere) }
            return
        }
        try await connect()
        let service = try client.resolve(RemoteAuth.self, id: ServiceNames.auth)
        let began = changeCount
        while true {
            do {
                let grant = try await service.refresh(credential.refreshToken)
                guard changeCount == began else { return }
                storeCredential(grant.credential)
                return accept(grant)
            } catch AuthError.sessionEnded(let end) {
                guard changeCount == began else { return }
                if let other = try? self.credential(), other.refreshToken != credential.refreshToken {
                    credential = other
                    continue
                }
                return try removeCredential(end)
            }
        }
    }

    /// Signs in the client's connection, which another user may use. Afterwards either the session is known to have ended, or
    /// the connection belongs to it.
    func signInConnection() async { try? await renewOverClient() }

    /// Renews before the token expires, while a user is signed in.
    private func scheduleRenewal(after lifetime: Duration) {
        guard case .owned = connections else { return }
        timer?.cancel()
        let sleep = sleep
        timer = Task { [weak self] in
            var delay = lifetime * 4 / 5
            while (try? await sleep(delay)) != nil, let self, await !self.renewInTime() { delay = lifetime / 30 }
        }
    }

    /// Returns false when the renewal must be tried again.
    private func renewInTime() async -> Bool {
        guard states.currentValue.state.isSignedIn else { return true }
        accessToken = nil
        // Without a connection, the next one renews.
        guard client?.connectionState.currentValue == .connected else { return true }
        return (try? await renew()) != nil
    }

    // MARK: State

    private func credential() throws -> Credential? { try unsaved ?? credentials.load() }

    private func storeCredential(_ credential: Credential) {
        do {
            try credentials.save(credential)
            unsaved = nil
        } catch {
            // The session is valid, and its last token must not be lost.
            unsaved = credential
        }
    }

    private func accept(_ grant: SessionGrant) {
        accessToken = grant.accessToken
        scheduleRenewal(after: .seconds(grant.accessSeconds))
        publishStatus(SessionStatus(AuthState(grant.user)))
    }

    private func publishStatus(_ status: SessionStatus) {
        let before = account
        states.update(status)
        guard account != before else { return }
        let observer = currentToken.withLock { $0.observer }
        observer?.accountChanged(from: before)
    }

    /// - Parameter end: the reason when the session ended elsewhere.
    private func removeCredential(_ end: SessionEndReason?) throws {
        forgetUser(end)
        try credentials.save(nil)
    }

    private func forgetUser(_ end: SessionEndReason?) {
        accessToken = nil
        unsaved = nil
        timer?.cancel()
        publishStatus(SessionStatus(.unauthenticated, end: end))
    }
}

/// Counts calls that sign a client's connection in.
struct SignInCalls: Sendable {
    var begun = 0
    var ended = 0

    var isUnderWay: Bool { begun > ended }
}

extension SessionGrant {
    fileprivate var credential: Credential { Credential(refreshToken: refreshToken, user: user) }
}

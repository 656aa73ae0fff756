public import Transports
package import Synchronization

/// The connection that a call came over, as actors see it: the principal at its other end, and the time of its close. For an
/// actor in a client the other end is the server.
public final class CallerConnection: Sendable, Hashable {
    /// A registration with `onClose`. The connection keeps its closure until the handler is cancelled.
    public struct CloseHandler: Sendable {
        fileprivate weak let connection: CallerConnection?
        fileprivate let number: UInt64

        /// Removes the closure, unless it already runs.
        public func cancel() { connection?.removeHandler(number) }
    }

    /// A revoked authorization.
    package struct Revocation: Sendable {
        package let error: TrebuchetError
        /// The name of the actor that may still be called.
        package let exempt: String?
    }

    /// The mutable state, guarded by a lock.
    private struct State {
        var principal: Principal?
        var revocation: Revocation?
        var authorizationChanged: (@Sendable () -> Void)?
        var authorizationApplied: (@Sendable () async -> Void)?
        /// Closures that run after the principal changes.
        var principalObservers: [@Sendable () -> Void] = []
        /// Closures that run after the authorization is revoked.
        var revocationObservers: [@Sendable () -> Void] = []
        var isOpen = true
        var handlers: [UInt64: @Sendable () -> Void] = [:]
        var lastHandler: UInt64 = 0
        var endStreams: (@Sendable (ActorName, TrebuchetError) -> Void)?
    }

    /// The address of the other end; nil for a client in this process. Behind a proxy of `AccessPolicy.trustedProxies` it is
    /// the client's, with port 0.
    public let remoteAddress: SocketAddress?
    /// The number of the connection, unique for the lifetime of the process.
    package let number = CallerConnection.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
    /// The header fields of the request with which the client connected, by their names in lower case: those of
    /// `AccessPolicy.retainedHeaders`, the first one of each name. The client chooses them freely.
    public let headers: [String: String]
    private let state: Mutex<State>
    /// The number of times `principal` was set. Incremented after the change, so that a reader that sees the new count also
    /// sees the new principal.
    package let principalChanges = Atomic<UInt64>(0)
    /// The value of `isRevoked`, which is read without the lock.
    private let isRevokedFlag = Atomic<Bool>(false)

    private static let lastNumber = Atomic<UInt64>(0)

    /// A Boolean value that indicates whether the other end is a server: the one of an actor in a client, or one whose actors
    /// call others by name.
    public let isServer: Bool

    /// Set if many callers share this object: the actors of one server. It then keeps no state of any caller, and no caller
    /// changes it for the others.
    private let isShared: Bool

    package init(principal: Principal?, remoteAddress: SocketAddress?, headers: [String: String] = [:]) {
        (isServer, isShared) = (false, false)
        self.headers = headers
        self.remoteAddress = remoteAddress
        state = Mutex(State(principal: principal))
    }

    /// Creates a connection with a server as caller.
    ///
    /// - Parameter isShared: whether it serves all calls of a server's actors to other actors.
    package init(ofServer: (), isShared: Bool = false) {
        (isServer, self.isShared) = (true, isShared)
        headers = [:]
        remoteAddress = nil
        state = Mutex(State(principal: nil))
    }

    /// The principal at the other end: initially the one that the `AccessPolicy` has found, later the one that a sign-in or
    /// sign-out method sets. A new value applies from the next call on and ends a revocation by `revokeAccess`. It is always nil for
    /// a server whose actors call others by name: there neither this setter nor `revokeAccess` has an effect.
    public var principal: Principal? {
        get { state.withLock { $0.principal } }
        set {
            if isShared { return }
            let (changed, observers) = state.withLock { state in
                defer {
                    (state.principal, state.revocation) = (newValue, nil)
                    isRevokedFlag.store(false, ordering: .releasing)
                    principalChanges.add(1, ordering: .releasing)
                }
                return (
                    state.revocation == nil ? nil : state.authorizationChanged,
                    state.principal == newValue ? [] : state.principalObservers
                )
            }
            changed?()
            for observer in observers { observer() }
        }
    }

    /// Registers a closure that runs whenever the principal, its roles or its claims change, until the connection closes. It
    /// runs on the thread that sets `principal`, perhaps under a lock: it must not block or access the code that set it.
    package func onPrincipalChange(_ body: @escaping @Sendable () -> Void) {
        state.withLock { if $0.isOpen { $0.principalObservers.append(body) } }
    }

    /// Registers a closure that runs whenever the authorization is revoked, until the connection closes; as `onPrincipalChange`.
    package func onRevocation(_ body: @escaping @Sendable () -> Void) {
        state.withLock { if $0.isOpen { $0.revocationObservers.append(body) } }
    }

    /// Revokes the authorization of the connection after the session of its client has ended. Calls and streams fail with
    /// `unauthenticated` as soon as its reactor is notified; ``authorizationApplied()`` waits for that. Running streams end with that
    /// error, and the client is notified. Setting `principal`, to a new principal or to nil, ends the revocation.
    ///
    /// Calls admitted before keep their identity, so `principal` is unchanged: no call loses its principal because the session
    /// ends while it runs.
    ///
    /// - Parameters:
    ///   - reason: the message for the client.
    ///   - actor: an actor that may still be called, for a new sign-in.
    public func revokeAccess(_ reason: String, except actor: String? = nil) {
        if isShared { return }
        let (changed, observers) = state.withLock { state in
            state.revocation = Revocation(error: TrebuchetError(.unauthenticated, reason), exempt: actor)
            isRevokedFlag.store(true, ordering: .releasing)
            return (state.authorizationChanged, state.revocationObservers)
        }
        changed?()
        for observer in observers { observer() }
    }

    /// A Boolean value that indicates whether the authorization is revoked.
    public var isRevoked: Bool { isRevokedFlag.load(ordering: .acquiring) }

    /// The revocation in force.
    package var currentRevocation: Revocation? { state.withLock { $0.revocation } }

    /// Returns the error for a call to an actor; nil if it may be called. Without a name it applies to any actor.
    package func revocation(of actor: String? = nil) -> TrebuchetError? {
        state.withLock { state in
            guard let revocation = state.revocation else { return nil }
            if let actor, let exempt = revocation.exempt, exempt.utf8.elementsEqual(actor.utf8) { return nil }
            return revocation.error
        }
    }

    /// Registers the closure for changes of the authorization.
    ///
    /// - Parameters:
    ///   - changed: runs after a revocation starts or ends, on any thread.
    ///   - applied: returns when earlier changes apply to all calls that have not begun.
    package func onAuthorizationChange(
        _ changed: @escaping @Sendable () -> Void, applied: @escaping @Sendable () async -> Void
    ) {
        state.withLock { ($0.authorizationChanged, $0.authorizationApplied) = (changed, applied) }
    }

    /// Returns when the connection's reactor applies a revocation: it begins no further calls that the revocation refuses. Returns
    /// immediately for a closed connection. May be called from any isolation.
    public func authorizationApplied() async { await state.withLock { $0.authorizationApplied }?() }

    /// A Boolean value that indicates whether the connection is open. It closes when it breaks or when its client stops
    /// answering pings.
    public var isOpen: Bool { state.withLock { $0.isOpen } }

    /// Registers a closure that runs once after the connection has closed, or immediately if it is closed already. It runs on
    /// the connection's reactor and must not block. It never runs for a server whose actors call others by name, because that
    /// caller has no connection that could close.
    @discardableResult
    public func onClose(_ body: @escaping @Sendable () -> Void) -> CloseHandler {
        if isShared { return CloseHandler(connection: self, number: 0) }
        let number: UInt64? = state.withLock { state in
            guard state.isOpen else { return nil }
            state.lastHandler += 1
            state.handlers[state.lastHandler] = body
            return state.lastHandler
        }
        if number == nil { body() }
        return CloseHandler(connection: self, number: number ?? 0)
    }

    /// For tests: the number of registered close handlers.
    package var closeHandlerCount: Int { state.withLock { $0.handlers.count } }

    private func removeHandler(_ number: UInt64) {
        // Freed outside the lock, because freeing captured objects may run arbitrary code.
        let removed = state.withLock { $0.handlers.removeValue(forKey: number) }
        _ = removed
    }

    package func endsStreams(_ body: @escaping @Sendable (ActorName, TrebuchetError) -> Void) {
        state.withLock { $0.endStreams = body }
    }

    /// Ends the streams of an actor that inspects its observers, with an error. May be called on any thread.
    package func endStreams(ofActor name: String, _ error: TrebuchetError) {
        state.withLock { $0.endStreams }?(ActorName(name), error)
    }

    /// Runs the close handlers after the session has lost its connection.
    package func didClose() {
        let (handlers, ended, changed, observers) = state.withLock { state in
            state.isOpen = false
            defer {
                (state.handlers, state.endStreams) = ([:], nil)
                (state.authorizationChanged, state.authorizationApplied) = (nil, nil)
                (state.principalObservers, state.revocationObservers) = ([], [])
            }
            return (
                state.handlers, state.endStreams, state.authorizationChanged,
                state.principalObservers + state.revocationObservers
            )
        }
        // Freed outside the lock, and only after the session has ended.
        defer { withExtendedLifetime((ended, changed, observers)) {} }
        for (_, body) in handlers.sorted(by: { $0.key < $1.key }) { body() }
    }

    public static func == (a: CallerConnection, b: CallerConnection) -> Bool { a === b }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

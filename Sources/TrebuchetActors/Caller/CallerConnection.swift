public import Transports
package import Synchronization

/// The connection that a call came over, as actors see it: who is at its other end, and when it goes. An actor that lives in a
/// client sees its server there.
public final class CallerConnection: Sendable, Hashable {
    /// What `onClose` hands out: as long as it is not cancelled, the connection keeps its closure.
    public struct CloseHandler: Sendable {
        fileprivate weak let connection: CallerConnection?
        fileprivate let number: UInt64

        /// Forgets the closure, unless it runs already.
        public func cancel() { connection?.forget(number) }
    }

    private struct Revocation {
        let error: TrebuchetError
        /// The actor that may be called all the same.
        let spared: String?
    }

    private struct State {
        var principal: Principal?
        var revocation: Revocation?
        var rightsChanged: (@Sendable () -> Void)?
        /// Told when somebody else is signed in.
        var principalObservers: [@Sendable () -> Void] = []
        var isOpen = true
        var handlers: [UInt64: @Sendable () -> Void] = [:]
        var lastHandler: UInt64 = 0
        var endStreams: (@Sendable (ActorName, TrebuchetError) -> Void)?
    }

    /// The address of the other end; nil for a client in this process. Behind a proxy of `AccessPolicy.trustedProxies` it is
    /// the client's, with port 0.
    public let remoteAddress: SocketAddress?
    /// No other connection of the process has it, or ever had it.
    package let number = CallerConnection.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
    private let state: Mutex<State>
    /// How often `principal` was set; counted up once it is, so that who has read this reads no one of before.
    package let principalChanges = Atomic<UInt64>(0)

    private static let lastNumber = Atomic<UInt64>(0)

    /// Whether a server is at the other end: that of an actor which lives in a client, or one whose actors call others by name.
    public let isServer: Bool

    /// Whether many callers have it, actors of one server: then it keeps nothing of any of them, and nobody changes it for the others.
    private let isShared: Bool

    package init(principal: Principal?, remoteAddress: SocketAddress?) {
        (isServer, isShared) = (false, false)
        self.remoteAddress = remoteAddress
        state = Mutex(State(principal: principal))
    }

    /// As actors see it that a server calls.
    ///
    /// - Parameter isShared: whether for all calls of a server's actors to others.
    package init(ofServer: (), isShared: Bool = false) {
        (isServer, self.isShared) = (true, isShared)
        remoteAddress = nil
        state = Mutex(State(principal: nil))
    }

    /// Who is at the other end: first what the `AccessPolicy` found out, then what a method that signs somebody in or out
    /// makes of it. It counts from the next call on. Setting it ends what `revoke` has begun. Of a server whose actors call others by name it is
    /// nil for ever: neither this nor `revoke` does anything there.
    public var principal: Principal? {
        get { state.withLock { $0.principal } }
        set {
            if isShared { return }
            let (changed, observers) = state.withLock { state in
                defer {
                    (state.principal, state.revocation) = (newValue, nil)
                    principalChanges.add(1, ordering: .releasing)
                }
                return (
                    state.revocation == nil ? nil : state.rightsChanged,
                    state.principal == newValue ? [] : state.principalObservers
                )
            }
            changed?()
            for observer in observers { observer() }
        }
    }

    /// Runs a closure whenever somebody else is signed in, or with other roles or claims, as long as the connection is there. It
    /// runs where `principal` is set, perhaps under a lock: it must not block and not look at who set it.
    package func onPrincipalChange(_ body: @escaping @Sendable () -> Void) {
        state.withLock { if $0.isOpen { $0.principalObservers.append(body) } }
    }

    /// Takes away what the connection may do, as the session of its client has ended: its calls and streams fail with
    /// `unauthenticated` as soon as its reactor has heard of it, streams that it has end so, and its client is told. It
    /// ends when `principal` is set: somebody signs in, or goes on as nobody.
    ///
    /// What was let in before goes on as who it was, so `principal` stays: nothing is ever done in the name of nobody
    /// because somebody has lost his session meanwhile.
    ///
    /// - Parameters:
    ///   - reason: for the client.
    ///   - actor: one that may be called all the same, to sign in again.
    public func revoke(_ reason: String, except actor: String? = nil) {
        if isShared { return }
        let changed = state.withLock { state in
            state.revocation = Revocation(error: TrebuchetError(.unauthenticated, reason), spared: actor)
            return state.rightsChanged
        }
        changed?()
    }

    /// Whether its rights were taken away.
    public var isRevoked: Bool { state.withLock { $0.revocation != nil } }

    /// Why an actor may not be called; nil when it may. Without a name: any.
    package func revocation(of actor: String? = nil) -> TrebuchetError? {
        state.withLock { state in
            guard let revocation = state.revocation else { return nil }
            if let actor, let spared = revocation.spared, spared.utf8.elementsEqual(actor.utf8) { return nil }
            return revocation.error
        }
    }

    /// - Parameter changed: told when its rights are taken away, or given back; from anywhere.
    package func followsRights(_ changed: @escaping @Sendable () -> Void) {
        state.withLock { $0.rightsChanged = changed }
    }

    /// Whether the connection is there: it is given up when it breaks, or when its client answers no pings.
    public var isOpen: Bool { state.withLock { $0.isOpen } }

    /// Runs a closure once when the connection has gone; at once when it has gone already. It runs on the connection's
    /// reactor and must not block. Never for a server whose actors call others by name: that goes on.
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

    /// For tests: how many closures it keeps for its end.
    package var closeHandlerCount: Int { state.withLock { $0.handlers.count } }

    private func forget(_ number: UInt64) {
        // Freed outside of the lock: freeing what it holds may run any code.
        let removed = state.withLock { $0.handlers.removeValue(forKey: number) }
        _ = removed
    }

    package func endsStreams(_ body: @escaping @Sendable (ActorName, TrebuchetError) -> Void) {
        state.withLock { $0.endStreams = body }
    }

    /// Ends the streams that it has of an actor which looks at who observes it, with an error. From anywhere.
    package func endStreams(ofActor name: String, _ error: TrebuchetError) {
        state.withLock { $0.endStreams }?(ActorName(name), error)
    }

    /// The session has lost its connection.
    package func didClose() {
        let (handlers, ended, changed, observers) = state.withLock { state in
            state.isOpen = false
            defer {
                (state.handlers, state.endStreams, state.rightsChanged, state.principalObservers) = ([:], nil, nil, [])
            }
            return (state.handlers, state.endStreams, state.rightsChanged, state.principalObservers)
        }
        // Freed outside of the lock, and not before the session has come to its end.
        defer { withExtendedLifetime((ended, changed, observers)) {} }
        for (_, body) in handlers.sorted(by: { $0.key < $1.key }) { body() }
    }

    public static func == (a: CallerConnection, b: CallerConnection) -> Bool { a === b }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

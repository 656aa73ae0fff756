public import Networking
internal import Synchronization

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

    private struct State {
        var principal: Principal?
        var isOpen = true
        var handlers: [UInt64: @Sendable () -> Void] = [:]
        var lastHandler: UInt64 = 0
        var endStreams: (@Sendable (ActorName, TrebuchetError) -> Void)?
    }

    /// The address of the other end; nil for a client in this process. Behind a proxy of `AccessPolicy.trustedProxies` it is
    /// the client's, with port 0.
    public let remoteAddress: SocketAddress?
    private let state: Mutex<State>

    /// Whether the server is at the other end: in an actor that lives in a client.
    public let isServer: Bool

    init(principal: Principal?, remoteAddress: SocketAddress?) {
        isServer = false
        self.remoteAddress = remoteAddress
        state = Mutex(State(principal: principal))
    }

    /// As actors in a client see it.
    init(ofServer: ()) {
        isServer = true
        remoteAddress = nil
        state = Mutex(State(principal: nil))
    }

    /// Who is at the other end: first what the `AccessPolicy` found out, then what a method that signs somebody in or out
    /// makes of it. It counts from the next call on.
    public var principal: Principal? {
        get { state.withLock { $0.principal } }
        set { state.withLock { $0.principal = newValue } }
    }

    /// Whether the connection is there: it is given up when it breaks, or when its client answers no pings.
    public var isOpen: Bool { state.withLock { $0.isOpen } }

    /// Runs a closure once when the connection has gone; at once when it has gone already. It runs on the connection's
    /// reactor and must not block.
    @discardableResult
    public func onClose(_ body: @escaping @Sendable () -> Void) -> CloseHandler {
        let number: UInt64? = state.withLock { state in
            guard state.isOpen else { return nil }
            state.lastHandler += 1
            state.handlers[state.lastHandler] = body
            return state.lastHandler
        }
        if number == nil { body() }
        return CloseHandler(connection: self, number: number ?? 0)
    }

    private func forget(_ number: UInt64) {
        // Freed outside of the lock: freeing what it holds may run any code.
        let removed = state.withLock { $0.handlers.removeValue(forKey: number) }
        _ = removed
    }

    func endsStreams(_ body: @escaping @Sendable (ActorName, TrebuchetError) -> Void) {
        state.withLock { $0.endStreams = body }
    }

    /// Ends the streams that it has of an actor which looks at who observes it, with an error. From anywhere.
    package func endStreams(ofActor name: String, _ error: TrebuchetError) {
        state.withLock { $0.endStreams }?(ActorName(name), error)
    }

    /// The session has lost its connection.
    func didClose() {
        let (handlers, ended) = state.withLock { state in
            state.isOpen = false
            defer { (state.handlers, state.endStreams) = ([:], nil) }
            return (state.handlers, state.endStreams)
        }
        // Freed outside of the lock, and not before the session has come to its end.
        defer { withExtendedLifetime(ended) {} }
        for (_, body) in handlers.sorted(by: { $0.key < $1.key }) { body() }
    }

    public static func == (a: CallerConnection, b: CallerConnection) -> Bool { a === b }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

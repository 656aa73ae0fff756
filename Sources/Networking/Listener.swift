internal import CEpoll
internal import Glibc
internal import Platform
internal import Synchronization
package import Transports

/// A port that connections come in at, with one listening socket per reactor (`SO_REUSEPORT`): the kernel spreads
/// connections over them and no reactor passes a connection to another.
package final class Listener: Sendable {
    /// Connections that the kernel holds for us until we accept them, per reactor.
    private static let backlog: Int32 = 4096

    /// The address it is bound to, with the real port when 0 was asked for.
    package let address: SocketAddress
    private let acceptors: [Acceptor]

    /// Descriptors that connections of clients leave to others of the process, beside one for each reactor.
    package static let descriptorsForOthers = 8

    /// Listens on the first address of `host`. `onAccept` is called on the reactor that owns the new connection, which
    /// starts it with a delegate or lets it go.
    ///
    /// - Parameters:
    ///   - keptBack: descriptors that it leaves to others: while fewer are left new connections wait.
    ///   - onScarcity: called on a reactor each time that connections wait since there are no descriptors for them.
    package static func bind(
        host: String, port: Int, reactors: [Reactor], keptBack: Int = 0,
        onScarcity: (@Sendable () -> Void)? = nil, onAccept: @escaping @Sendable (ByteChannel) -> Void
    ) throws(TransportError) -> Listener {
        let wanted = try SocketAddress.resolve(host: host, port: port)[0]
        try checkFree(wanted)
        var address = wanted
        var acceptors: [Acceptor] = []
        for reactor in reactors {
            let socket = try open(address)
            acceptors.append(
                Acceptor(socket, on: reactor, keptBack: keptBack, onScarcity: onScarcity, onAccept: onAccept))
            address = socket.localAddress ?? address
        }
        for acceptor in acceptors { acceptor.start() }
        return Listener(address: address, acceptors: acceptors)
    }

    private init(address: SocketAddress, acceptors: [Acceptor]) {
        self.address = address
        self.acceptors = acceptors
    }

    /// Accepts no more connections, when it returns. Those that exist go on.
    package func close() async {
        for acceptor in acceptors { await acceptor.stop() }
    }

    /// With `SO_REUSEPORT` a second server on the same port would quietly take half of the connections, so a socket
    /// without it is bound first, for a moment.
    private static func checkFree(_ address: SocketAddress) throws(TransportError) {
        guard address.port != 0 else { return }
        let socket = try Socket.open(for: address)
        defer { socket.close() }
        socket.set(SO_REUSEADDR)
        if address.isIPv6 { socket.set(IPV6_V6ONLY, level: Int32(IPPROTO_IPV6)) }
        try check(socket.bind(to: address), "bind", address)
    }

    private static func open(_ address: SocketAddress) throws(TransportError) -> Socket {
        let socket = try Socket.open(for: address)
        socket.set(SO_REUSEADDR)
        socket.set(SO_REUSEPORT)
        if address.isIPv6 { socket.set(IPV6_V6ONLY, level: Int32(IPPROTO_IPV6)) }
        do {
            try check(socket.bind(to: address), "bind", address)
            try check(socket.listen(backlog: backlog), "listen", address)
        } catch {
            socket.close()
            throw error
        }
        return socket
    }

    private static func check(_ number: Int32, _ call: String, _ address: SocketAddress) throws(TransportError) {
        guard number != 0 else { return }
        if number == EADDRINUSE {
            throw TransportError(
                .addressInUse,
                "port \(address.port) on \(address.host) is in use (\(call): EADDRINUSE); choose another port")
        }
        throw .system(call, number, "listening on \(address)")
    }
}

/// The listening socket of one reactor.
///
/// `@unchecked Sendable`: its state is touched on its reactor alone.
private final class Acceptor: ReadinessHandler, @unchecked Sendable {
    /// Nanoseconds in which connections are taken in one turn, and how many at most, so that a storm of new ones does not starve
    /// those that exist. The others wait in the kernel.
    private static let partOfTurn: UInt64 = 2_000_000
    private static let acceptsPerTurn = 128
    /// How long accepting rests when the process has no descriptors left.
    private static let pause = Duration.milliseconds(50)

    private let socket: Socket
    private let reactor: Reactor
    private let keptBack: Int
    private let onScarcity: (@Sendable () -> Void)?
    private let onAccept: @Sendable (ByteChannel) -> Void
    /// Taken when there were too few descriptors; it waits until there are more.
    private var waiting: Socket?
    private var isOpen = true
    private var isWatched = false

    init(
        _ socket: Socket, on reactor: Reactor, keptBack: Int, onScarcity: (@Sendable () -> Void)?,
        onAccept: @escaping @Sendable (ByteChannel) -> Void
    ) {
        self.socket = socket
        self.reactor = reactor
        self.keptBack = keptBack
        self.onScarcity = onScarcity
        self.onAccept = onAccept
    }

    func start() { reactor.execute { self.watch() } }

    func stop() async {
        await withCheckedContinuation { done in
            reactor.execute {
                if self.isOpen {
                    self.isOpen = false
                    self.unwatch()
                    self.socket.stopListening()
                    self.socket.close()
                    self.waiting?.close()
                    self.waiting = nil
                }
                done.resume()
            }
        }
    }

    private func watch() {
        guard isOpen, !isWatched else { return }
        if let waiting {
            // Another descriptor than its own: as low as there is one.
            let probe = fcntl(waiting.descriptor, F_DUPFD_CLOEXEC, 0)
            if probe >= 0 { close(probe) }
            guard probe >= 0, !isScarce(probe) else { return rest() }
            self.waiting = nil
            onAccept(ByteChannel(waiting, on: reactor))
        }
        do {
            try reactor.add(socket.descriptor, self, events: EPOLLIN.rawValue)
            isWatched = true
        } catch {
            rest()
        }
    }

    private func unwatch() {
        guard isWatched else { return }
        isWatched = false
        reactor.remove(socket.descriptor, self)
    }

    /// Whether so few are left that they are for others. The system gives the lowest number that is free.
    private func isScarce(_ descriptor: Int32) -> Bool {
        guard keptBack > 0 else { return false }
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return false }
        let most = Int(clamping: limit.rlim_cur)
        return Int(descriptor) >= most - min(keptBack, most / 4)
    }

    /// New connections wait in the kernel meanwhile; nobody who is connected notices.
    private func rest() {
        onScarcity?()
        unwatch()
        reactor.schedule(after: Self.pause) { self.watch() }
    }

    override func ready(_ events: UInt32) {
        var slice = TimeSlice(budget: Self.partOfTurn, from: MonotonicClock.now)
        for _ in 0..<Self.acceptsPerTurn {
            guard isOpen else { return }
            if slice.isLookDue(), slice.isUsedUp(lastLook: &reactor.lastLook) { return }
            let (accepted, error) = socket.accept()
            if let accepted {
                if isScarce(accepted.descriptor) {
                    waiting = accepted
                    return rest()
                }
                onAccept(ByteChannel(accepted, on: reactor))
                continue
            }
            switch error {
            case EAGAIN: return
            case EMFILE, ENFILE, ENOBUFS, ENOMEM: return rest()
            default: continue  // the peer has gone before we took it (ECONNABORTED and the like)
            }
        }
    }
}

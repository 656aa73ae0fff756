internal import CEpoll
internal import Glibc
internal import Platform
internal import Synchronization
package import Transports

/// A listening port, with one socket per reactor and address (`SO_REUSEPORT`). The kernel distributes connections among them, so
/// no reactor passes a connection to another.
package final class Listener: Sendable {
    /// The maximum number of connections that the kernel queues, per reactor.
    private static let backlog: Int32 = 4096

    /// The bound addresses, with the port that the system chose for 0.
    package let addresses: [SocketAddress]
    /// The first bound address.
    package var address: SocketAddress { addresses[0] }
    private let acceptors: [Acceptor.Handle]

    /// The number of descriptors that client connections leave free for the rest of the process, in addition to one per reactor.
    package static let descriptorsForOthers = 8
    /// The number of tries for port 0: the port of the first address may be in use at the next one.
    private static let maximumPortsTried = 16

    /// Listens on each address of `host` that this machine has: on IPv6 and IPv4 for `::`, on both loopback addresses for
    /// `localhost`. `onAccept` is called on the reactor that owns the new connection. It starts the channel with a delegate or
    /// drops it.
    ///
    /// - Parameters:
    ///   - reservedDescriptors: the number of descriptors to leave free: while fewer are free, new connections wait.
    ///   - onDescriptorExhaustion: called on a reactor each time that connections start to wait for descriptors.
    package static func bind(
        host: String, port: Int, reactors: [Reactor], reservedDescriptors: Int = 0,
        onDescriptorExhaustion: (@Sendable () -> Void)? = nil, onAccept: @escaping @Sendable (ByteChannel) -> Void
    ) throws(TransportError) -> Listener {
        let wanted = try SocketAddress.resolve(host: host, port: port, forListening: true)
        return try bind(
            to: wanted, reactors: reactors, reservedDescriptors: reservedDescriptors,
            onDescriptorExhaustion: onDescriptorExhaustion,
            onAccept: onAccept)
    }

    /// Listens on the given addresses.
    ///
    /// - Parameter wanted: at least one address, all with the same port.
    static func bind(
        to wanted: [SocketAddress], reactors: [Reactor], reservedDescriptors: Int = 0,
        onDescriptorExhaustion: (@Sendable () -> Void)? = nil, onAccept: @escaping @Sendable (ByteChannel) -> Void
    ) throws(TransportError) -> Listener {
        let (addresses, sockets) = try open(wanted, count: reactors.count)
        let acceptors = sockets.enumerated().map { index, socket in
            Acceptor.Handle(
                socket, on: reactors[index % reactors.count], reservedDescriptors: reservedDescriptors,
                onDescriptorExhaustion: onDescriptorExhaustion,
                onAccept: onAccept)
        }
        for acceptor in acceptors { acceptor.start() }
        return Listener(addresses: addresses, acceptors: acceptors)
    }

    private init(addresses: [SocketAddress], acceptors: [Acceptor.Handle]) {
        self.addresses = addresses
        self.acceptors = acceptors
    }

    /// Stops accepting connections; complete on return. Existing connections continue.
    package func close() async {
        for acceptor in acceptors { await acceptor.stop() }
    }

    /// Opens `count` sockets at each address, in the order of the addresses.
    private static func open(
        _ wanted: [SocketAddress], count: Int
    ) throws(TransportError) -> ([SocketAddress], [Socket]) {
        for _ in 1..<maximumPortsTried {
            do throws(TransportError) {
                return try openOnce(wanted, count)
            } catch {
                guard error.code == .addressInUse, wanted.count > 1, wanted[0].port == 0 else { throw error }
            }
        }
        return try openOnce(wanted, count)
    }

    private static func openOnce(
        _ wanted: [SocketAddress], _ count: Int
    ) throws(TransportError) -> ([SocketAddress], [Socket]) {
        var addresses: [SocketAddress] = []
        var sockets: [Socket] = []
        var unavailable: TransportError?
        for address in wanted {
            do throws(TransportError) {
                var address = address
                if let port = addresses.first?.port {
                    address = SocketAddress(host: address.host, port: port, isIPv6: address.isIPv6)
                }
                try checkFree(address)
                for _ in 0..<count {
                    let socket = try open(address)
                    sockets.append(socket)
                    address = socket.localAddress ?? address
                }
                addresses.append(address)
            } catch {
                // A name may have addresses that the machine lacks, such as `::1` for `localhost` where IPv6 is disabled.
                if error.code == .addressInvalid {
                    unavailable = unavailable ?? error
                    continue
                }
                for socket in sockets { socket.close() }
                throw error
            }
        }
        if let unavailable, addresses.isEmpty { throw unavailable }
        return (addresses, sockets)
    }

    /// Throws if the address is in use. With `SO_REUSEPORT` a second server on the same port would silently receive half of the
    /// connections, so a socket without it is bound first for a moment.
    private static func checkFree(_ address: SocketAddress) throws(TransportError) {
        guard address.port != 0 else { return }
        let socket = try Socket.open(for: address)
        defer { socket.close() }
        socket.set(SO_REUSEADDR)
        socket.setFamilies(of: address)
        try check(socket.bind(to: address), "bind", address)
    }

    private static func open(_ address: SocketAddress) throws(TransportError) -> Socket {
        let socket = try Socket.open(for: address)
        socket.set(SO_REUSEADDR)
        socket.set(SO_REUSEPORT)
        socket.setFamilies(of: address)
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

/// The listening socket of one reactor. Only on that reactor.
private final class Acceptor: ReadinessHandler {
    /// An acceptor as other threads hold it.
    struct Handle: Sendable {
        private let reactor: Reactor
        private let acceptor: LoopBound<Acceptor>

        init(
            _ socket: Socket, on reactor: Reactor, reservedDescriptors: Int,
            onDescriptorExhaustion: (@Sendable () -> Void)?,
            onAccept: @escaping @Sendable (ByteChannel) -> Void
        ) {
            self.reactor = reactor
            acceptor = LoopBound(
                passing: Acceptor(
                    socket, on: reactor, reservedDescriptors: reservedDescriptors,
                    onDescriptorExhaustion: onDescriptorExhaustion, onAccept: onAccept), to: reactor)
        }

        func start() { reactor.execute { acceptor.value.watch() } }
        func stop() async { await reactor.perform { acceptor.value.stop() } }
    }

    /// The time slice in nanoseconds and the maximum number of accepts per turn, so that a burst of new connections does not
    /// starve existing ones. The others wait in the kernel.
    private static let partOfTurn: UInt64 = 2_000_000
    private static let acceptsPerTurn = 128
    /// The pause in accepting when the process has no free descriptors.
    private static let pause = Duration.milliseconds(50)

    private let socket: Socket
    private let reactor: Reactor
    private let reservedDescriptors: Int
    private let onDescriptorExhaustion: (@Sendable () -> Void)?
    private let onAccept: @Sendable (ByteChannel) -> Void
    /// A connection that was accepted with too few free descriptors; it waits until there are more.
    private var waiting: Socket?
    private var isOpen = true
    private var isWatched = false

    private init(
        _ socket: Socket, on reactor: Reactor, reservedDescriptors: Int,
        onDescriptorExhaustion: (@Sendable () -> Void)?,
        onAccept: @escaping @Sendable (ByteChannel) -> Void
    ) {
        self.socket = socket
        self.reactor = reactor
        self.reservedDescriptors = reservedDescriptors
        self.onDescriptorExhaustion = onDescriptorExhaustion
        self.onAccept = onAccept
    }

    private func stop() {
        guard isOpen else { return }
        isOpen = false
        unwatch()
        socket.stopListening()
        socket.close()
        waiting?.close()
        waiting = nil
    }

    private func watch() {
        guard isOpen, !isWatched else { return }
        if let waiting {
            // Duplicates the descriptor, which yields the lowest free number.
            let probe = fcntl(waiting.descriptor, F_DUPFD_CLOEXEC, 0)
            if probe >= 0 { close(probe) }
            guard probe >= 0, !isBelowReserve(probe) else { return pauseAccepting() }
            self.waiting = nil
            onAccept(ByteChannel(waiting, on: reactor))
        }
        do {
            try reactor.watchDescriptor(socket.descriptor, self, events: EPOLLIN.rawValue)
            isWatched = true
        } catch {
            pauseAccepting()
        }
    }

    private func unwatch() {
        guard isWatched else { return }
        isWatched = false
        reactor.remove(socket.descriptor, self)
    }

    /// Returns whether so few descriptors are left that they are reserved. The system assigns the lowest free number.
    private func isBelowReserve(_ descriptor: Int32) -> Bool {
        guard reservedDescriptors > 0 else { return false }
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return false }
        let most = Int(clamping: limit.rlim_cur)
        return Int(descriptor) >= most - min(reservedDescriptors, most / 4)
    }

    /// Pauses accepting. New connections wait in the kernel; existing ones are not affected.
    private func pauseAccepting() {
        onDescriptorExhaustion?()
        unwatch()
        reactor.schedule(after: Self.pause) { self.watch() }
    }

    override func ready(_ events: UInt32) {
        var slice = TimeSlice(budget: Self.partOfTurn, from: MonotonicClock.now)
        for _ in 0..<Self.acceptsPerTurn {
            guard isOpen else { return }
            if slice.isCheckDue(), slice.isUsedUp(lastClockReading: &reactor.lastClockReading) { return }
            let (accepted, error) = socket.accept()
            if let accepted {
                if isBelowReserve(accepted.descriptor) {
                    waiting = accepted
                    return pauseAccepting()
                }
                onAccept(ByteChannel(accepted, on: reactor))
                continue
            }
            switch error {
            case EAGAIN: return
            case EMFILE, ENFILE, ENOBUFS, ENOMEM: return pauseAccepting()
            default: continue  // the peer has disconnected before the accept (ECONNABORTED and the like)
            }
        }
    }
}

internal import Networking
internal import Synchronization
public import Transports

/// A TCP proxy in this process that is as bad as a network can be: put it in front of a server to see what an app does then.
///
///     let address = try await server.start()
///     let link = try FaultyLink(to: address, seed: 17, faults: .harsh)
///     let client = TrebuchetClient(transport: .webSocket(host: link.address.host, port: link.address.port))
///     …
///     await link.cutAll()
///     …
///     await link.close()
///
/// It cuts connections, in order and with resets, leaves some half open so that the server holds the old one beside the
/// client's new one, or even gets more from it, stalls and delays bytes and splits them at any place. What happens to the n-th connection, after which
/// byte and for how long, depends on the seed alone: print it when a test fails, and the same happens again, as far as the
/// app sends the same bytes. A cut loses the end of what was sent; bytes are never changed or brought into another order.
///
/// Usable from any isolation. A link that is let go of closes itself.
public final class FaultyLink: Sendable {
    private struct Port {
        var listener: Listener?
        var reservation: PortReservation?
    }

    /// Where clients connect, on 127.0.0.1.
    public let address: SocketAddress
    /// What all choices come from: print it when a test fails, and give it to the next run.
    public let seed: UInt64
    private let core: FaultyLinkCore
    private let port = Mutex(Port())

    /// Listens on a free port of this machine, for connections to a server.
    ///
    /// - Throws: `TransportError` when it cannot listen.
    public init(to server: SocketAddress, seed: UInt64, faults: Faults = .none) throws {
        self.seed = seed
        let core = FaultyLinkCore(
            reactor: ReactorGroup.client, server: server, schedule: FaultSchedule(seed: seed, faults: faults))
        self.core = core
        let listener = try Self.listen(port: 0, core)
        address = listener.address
        let reservation = PortReservation(address)
        port.withLock { $0 = Port(listener: listener, reservation: reservation) }
        core.count { $0.openSockets += 2 }
    }

    deinit {
        let core = core
        let listener = port.withLock { $0.listener }
        core.reactor.execute { _ = core.close() }
        if let listener { Task { await listener.close() } }
    }

    /// What it has done so far.
    public var counters: Counters { core.currentCounters }

    /// Cuts all connections there are. They are cut when it returns.
    public func cutAll(_ cut: Cut = .reset) async {
        let core = core
        await core.reactor.perform { core.cutAll(cut) }
    }

    /// Sets what goes wrong with connections that are made from now on; those that exist go on as they were.
    public func use(_ faults: Faults) async {
        let (core, schedule) = (core, FaultSchedule(seed: seed, faults: faults))
        await core.reactor.perform { core.use(schedule) }
    }

    /// Lets no byte pass, of new connections neither, until `resume()`. Connections stay open.
    public func stall() async { await setStalled(true) }

    /// Lets bytes pass again, those that came meanwhile first.
    public func resume() async { await setStalled(false) }

    private func setStalled(_ isStalled: Bool) async {
        let core = core
        await core.reactor.perform { core.setStalled(isStalled) }
    }

    /// Refuses new connections while `body` runs, as if no server was there. Those that exist go on.
    ///
    /// - Throws: what `body` throws; `TransportError` when it cannot listen again.
    public func refuseConnections<Result>(
        isolation: isolated (any Actor)? = #isolation, while body: () async throws -> Result
    ) async throws -> Result {
        await stopListening()
        do {
            let result = try await body()
            try listenAgain()
            return result
        } catch {
            try listenAgain()
            throw error
        }
    }

    /// Refuses new connections for a time, and returns when it is over.
    public func refuseConnections(for time: Duration) async throws {
        try await refuseConnections { try await Task.sleep(for: time) }
    }

    /// Resets all connections, half-open ones too, and stops listening. When it returns nothing of the link is left.
    public func close() async {
        await stopListening()
        let core = core
        for connecting in await core.reactor.perform({ core.close() }) { await connecting.value }
        // Channels tell of their end when a turn ends.
        await core.reactor.perform {}
        let reservation = port.withLock { port in
            defer { port.reservation = nil }
            return port.reservation
        }
        if reservation != nil { core.count { $0.openSockets -= 1 } }
    }

    private static func listen(port: Int, _ core: FaultyLinkCore) throws(TransportError) -> Listener {
        try Listener.bind(host: "127.0.0.1", port: port, reactors: [core.reactor]) { core.accept($0) }
    }

    private func stopListening() async {
        let listener = port.withLock { port in
            defer { port.listener = nil }
            return port.listener
        }
        guard let listener else { return }
        await listener.close()
        core.count { $0.openSockets -= 1 }
    }

    private func listenAgain() throws {
        try port.withLock { port in
            guard port.listener == nil, port.reservation != nil else { return }
            port.listener = try Self.listen(port: address.port, core)
            core.count { $0.openSockets += 1 }
        }
    }
}

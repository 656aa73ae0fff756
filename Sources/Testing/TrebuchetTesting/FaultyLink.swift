internal import Networking
internal import Synchronization
public import Transports

/// An in-process TCP proxy that simulates a bad network, placed in front of a server in a test.
///
///     let address = try await server.start()
///     let link = try FaultyLink(to: address, seed: 17, faults: .harsh)
///     let client = TrebuchetClient(transport: .webSocket(host: link.address.host, port: link.address.port))
///     …
///     await link.cutAll()
///     …
///     await link.close()
///
/// It cuts connections, in order and with resets, and leaves some half open. Then the server has the old connection
/// beside the client's new one, or even receives more bytes from it. It stalls and delays bytes and splits them at any
/// position.
///
/// The faults of the n-th connection, their positions and durations depend only on the seed. Print it when a test
/// fails, to repeat the faults, as far as the app sends the same bytes. A cut loses the end of the sent bytes; bytes
/// are never changed or reordered.
///
/// Usable from any isolation. A link closes itself at its release.
public final class FaultyLink: Sendable {
    /// The listener, and the reservation of its port.
    private struct Port {
        var listener: Listener?
        var reservation: PortReservation?
    }

    /// The address for clients, on 127.0.0.1.
    public let address: SocketAddress
    /// The seed of all choices: print it when a test fails, and pass it to the next run.
    public let seed: UInt64
    private let core: FaultyLinkCore
    private let port = Mutex(Port())

    /// Listens on a free local port, for connections to a server.
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

    /// The counters so far.
    public var counters: Counters { core.currentCounters }

    /// Cuts all present connections before it returns.
    public func disconnectAll(_ cut: Cut = .reset) async {
        let core = core
        await core.reactor.perform { core.cutAll(cut) }
    }

    /// Sets the faults of later connections. Existing ones keep their faults.
    public func setFaults(_ faults: Faults) async {
        let (core, schedule) = (core, FaultSchedule(seed: seed, faults: faults))
        await core.reactor.perform { core.setSchedule(schedule) }
    }

    /// Stops all bytes, including those of new connections, until `resumeTraffic()`. Connections stay open.
    public func pauseTraffic() async { await setStalled(true) }

    /// Resumes the bytes, beginning with those that arrived meanwhile.
    public func resumeTraffic() async { await setStalled(false) }

    private func setStalled(_ isStalled: Bool) async {
        let core = core
        await core.reactor.perform { core.setStalled(isStalled) }
    }

    /// Refuses new connections while `body` runs, as if there were no server. Existing ones continue.
    ///
    /// - Throws: the error of `body`; `TransportError` when it cannot listen again.
    public func refuseConnections<Result>(
        isolation: isolated (any Actor)? = #isolation, while body: () async throws -> Result
    ) async throws -> Result {
        await stopListening()
        do {
            let result = try await body()
            try restartListening()
            return result
        } catch {
            try restartListening()
            throw error
        }
    }

    /// Refuses new connections for a duration, and returns after it.
    public func refuseConnections(for time: Duration) async throws {
        try await refuseConnections { try await Task.sleep(for: time) }
    }

    /// Resets all connections, including half-open ones, and stops listening. When it returns, the link has released
    /// all resources.
    public func close() async {
        await stopListening()
        let core = core
        for connecting in await core.reactor.perform({ core.close() }) { await connecting.value }
        // Channels report their close at the end of a turn.
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

    private func restartListening() throws {
        try port.withLock { port in
            guard port.listener == nil, port.reservation != nil else { return }
            port.listener = try Self.listen(port: address.port, core)
            core.count { $0.openSockets += 1 }
        }
    }
}

internal import Networking
internal import Transports

/// One connection through a link: the client's socket, the one to the server, and a pipe in each direction. Only on the link's
/// reactor.
final class FaultyConnection: ByteChannelDelegate {
    let number: Int
    private let core: FaultyLinkCore
    /// Nil when it is closed, or not yet open.
    private var client: ByteChannel?
    private var server: ByteChannel?
    private var connecting: Task<Void, Never>?
    private var isConnecting = true
    private lazy var toServer = FaultyPipe(.toServer, of: self, core)
    private lazy var toClient = FaultyPipe(.toClient, of: self, core)
    /// True after a cut: the end of one side is then not forwarded to the other.
    private var isCut = false
    private var isLeftOpen = false

    init(number: Int, core: FaultyLinkCore) {
        self.number = number
        self.core = core
    }

    /// Accepts a client's connection and opens one to the server for it.
    func start(_ channel: ByteChannel) throws {
        try channel.start(self)
        client = channel
        core.count { $0.openSockets += 1 }
        let (address, reactor, bound) = (core.server, core.reactor, LoopBound(self, on: core.reactor))
        connecting = Task(executorPreference: reactor.tasks) {
            let result: Result<ByteChannel, any Error>
            do {
                result = .success(try await Connector.connect(host: address.host, port: address.port, on: reactor))
            } catch {
                result = .failure(error)
            }
            await reactor.perform { bound.value.didConnect(result) }
        }
    }

    private func didConnect(_ result: Result<ByteChannel, any Error>) {
        isConnecting = false
        defer { leaveIfDone() }
        // A channel that was not started closes itself.
        guard !isCut else { return }
        do {
            let channel = try result.get()
            try channel.start(self)
            server = channel
            core.count { $0.openSockets += 1 }
            toServer.pump()
        } catch {
            core.count { $0.failedConnects += 1 }
            isCut = true
            client?.reset()
        }
    }

    func source(of pipe: FaultyPipe) -> ByteChannel? { pipe.direction == .toServer ? client : server }
    func target(of pipe: FaultyPipe) -> ByteChannel? { pipe.direction == .toServer ? server : client }

    /// Resumes the bytes after a stall of the link.
    func pump() {
        toServer.pump()
        toClient.pump()
    }

    func cut(_ cut: FaultyLink.Cut) {
        guard !isCut else { return }
        isCut = true
        toClient.stop()
        core.count { $0.recordCut(cut) }
        if case .late(let time) = cut, server != nil { return endLate(time) }
        toServer.stop()
        connecting?.cancel()
        switch cut {
        case .inOrder:
            client?.closeAfterFlush()
            server?.closeAfterFlush()
        case .reset:
            client?.reset()
            server?.reset()
        case .halfOpen(let time):
            client?.reset()
            leaveServerOpen()
            core.reactor.schedule(after: time) { [weak self] in self?.server?.reset() }
        case .late:
            // The server was not reached yet, so nothing can have been sent.
            client?.reset()
        }
    }

    private func endLate(_ time: Duration) {
        leaveServerOpen()
        toServer.finish(after: time)
        client?.reset()
    }

    private func leaveServerOpen() {
        guard let server else { return }
        isLeftOpen = true
        core.count { $0.leftOpen += 1 }
        server.pauseReading()
    }

    /// Ends both sides at once. Returns a task to await, if any.
    func close() -> Task<Void, Never>? {
        isCut = true
        toServer.stop()
        toClient.stop()
        connecting?.cancel()
        client?.reset()
        server?.reset()
        return isConnecting ? connecting : nil
    }

    private func leaveIfDone() {
        if client == nil, server == nil, !isConnecting { core.remove(self) }
    }

    // MARK: ByteChannelDelegate

    func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
        (channel === client ? toServer : toClient).append(UnsafeRawBufferPointer(bytes))
    }

    func channelDidBecomeWritable(_ channel: ByteChannel) { (channel === client ? toClient : toServer).pump() }

    func channelDidClose(_ channel: ByteChannel, error: TransportError?) {
        core.count { $0.openSockets -= 1 }
        let isClient = channel === client
        if isClient {
            client = nil
        } else {
            server = nil
            if isLeftOpen { core.count { $0.leftOpen -= 1 } }
        }
        defer { leaveIfDone() }
        guard !isCut else { return }
        (isClient ? toClient : toServer).stop()
        if error == nil {
            // Orderly close: waiting bytes are still sent to the other side, then it is closed, too.
            (isClient ? toServer : toClient).sourceDidEnd()
        } else {
            isCut = true
            toServer.stop()
            toClient.stop()
            connecting?.cancel()
            (isClient ? server : client)?.reset()
        }
    }
}

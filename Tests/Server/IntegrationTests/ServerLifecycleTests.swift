import Glibc
import Networking
import Platform
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// The requirements of swift-service-lifecycle.
private protocol Service: Sendable { func run() async throws }
extension TrebuchetServer: Service {}

@Suite(.timeLimit(.minutes(5))) struct ServerLifecycleTests {
    private func freeServer(port: Int = 0) -> TrebuchetServer {
        TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: port))
    }

    /// A server on a port outside of the ephemeral range, so that it is still free after use.
    private func serverOnQuietPort() async throws -> (TrebuchetServer, SocketAddress) {
        while true {
            let server = freeServer(port: Int.random(in: 20_000..<30_000))
            if let address = try? await server.start() { return (server, address) }
            try Task.checkCancellation()
        }
    }

    @Test("starting on a used port throws addressInUse, and works once it is free")
    func portTaken() async throws {
        let (first, address) = try await serverOnQuietPort()
        let port = address.port
        let second = freeServer(port: port)
        let error = await #expect(throws: TransportError.self) { try await second.start() }
        #expect(error?.code == .addressInUse)
        #expect(error?.message.contains("\(port)") == true)
        await first.shutdown(drain: .zero)
        try await second.start()
        #expect(second.address?.port == port)
        await second.shutdown(drain: .zero)
    }

    @Test("run() returns when its task is cancelled, and the port is free again")
    func cancelledRun() async throws {
        let (server, address) = try await serverOnQuietPort()
        let running = Task { try await server.run() }
        let peer = try await RawPeer.connect(address)
        running.cancel()
        try await running.value
        // goAway, then the end.
        #expect(try await peer.next()?.type == "goAway")
        #expect(try await peer.next() == nil)
        let next = freeServer(port: address.port)
        try await next.start()
        await next.shutdown(drain: .zero)
    }

    /// Sends a signal to this process while a server with an in-flight call runs in it.
    private static func drainOn(_ signal: Int32) async throws {
        let journal = Journal()
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        await server.expose(SizedStateActor(journal: journal, actorSystem: server.actorSystem), as: "board")
        let running = Task { try await (server as any Service).run() }
        #expect(await eventually { server.address != nil })
        let peer = try await RawPeer.connect(try #require(server.address))
        peer.invoke("c", "board", "hold(_:)", #"["a"]"#)
        await journal.wait(for: "a began")
        kill(getpid(), signal)
        #expect(try await peer.next()?.type == "goAway")
        journal.record("a go")
        #expect(try await peer.next()?.payload.callID == "c")
        #expect(try await peer.next() == nil)
        try await running.value
    }

    @Test("run() drains and returns at SIGTERM and at SIGINT")
    func signals() async {
        await #expect(processExitsWith: .success) { try await ServerLifecycleTests.drainOn(SIGTERM) }
        await #expect(processExitsWith: .success) { try await ServerLifecycleTests.drainOn(SIGINT) }
    }

    /// Sends a signal twice while a server with an in-flight call drains.
    private static func endOn(_ signal: Int32) async throws {
        let journal = Journal()
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        await server.expose(SizedStateActor(journal: journal, actorSystem: server.actorSystem), as: "board")
        let peer = try await RawPeer.connect(server.start())
        let running = Task { try await server.run(shutdownOn: [ProcessSignal(signal)], drain: .seconds(600)) }
        peer.invoke("c", "board", "hold(_:)", #"["a"]"#)
        await journal.wait(for: "a began")
        // An installed handler keeps the signal from ending the process: from then on run() handles it.
        #expect(await eventually { !SignalState.isDefault(signal) })
        kill(getpid(), signal)
        _ = try await peer.next()
        kill(getpid(), signal)
        try await running.value
    }

    @Test("a second signal while run() drains ends the process by that signal, and the aborted work is logged")
    func secondSignal() async throws {
        let term = await #expect(processExitsWith: .exitCode(143), observing: [\.standardErrorContent]) {
            try await ServerLifecycleTests.endOn(SIGTERM)
        }
        let int = await #expect(processExitsWith: .exitCode(130), observing: [\.standardErrorContent]) {
            try await ServerLifecycleTests.endOn(SIGINT)
        }
        for (result, status) in [(term, 143), (int, 130)] {
            let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
            #expect(text.contains("exiting immediately with \(status); in-flight calls get no response"), "\(text)")
        }
    }

    @Test("SIGHUP does not end a server in run(), also without certificates to reload")
    func hangUp() async {
        await #expect(processExitsWith: .success) {
            let lines = Journal()
            let server = TrebuchetServer(
                transport: .webSocket(host: "127.0.0.1", port: 0), log: ConsoleLog { lines.record($0) })
            let running = Task { try await server.run() }
            #expect(await eventually { server.address != nil && !SignalState.isDefault(SIGHUP) })
            kill(getpid(), SIGHUP)
            await lines.wait { $0.contains { $0.contains("SIGHUP: no certificates") } }
            #expect(server.status == .serving)
            kill(getpid(), SIGTERM)
            try await running.value
        }
    }

    @Test("run(shutdownOn: []) leaves signals alone, as does run() after its return")
    func signalsLeftAlone() async {
        await #expect(processExitsWith: .signal(SIGTERM)) {
            let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
            let running = Task { try await server.run(shutdownOn: []) }
            #expect(await eventually { server.address != nil })
            kill(getpid(), SIGTERM)
            try await running.value
        }
        await #expect(processExitsWith: .signal(SIGTERM)) {
            let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
            try await server.start()
            let running = Task { try await server.run() }
            #expect(await eventually { !SignalState.isDefault(SIGTERM) })
            running.cancel()
            try await running.value
            kill(getpid(), SIGTERM)
        }
    }

    @Test("run() returns after shutdown()")
    func shutdownRun() async throws {
        let server = freeServer()
        try await server.start()
        let running = Task { try await server.run() }
        await server.shutdown(drain: .zero)
        try await running.value
        #expect(server.address == nil)
    }

    @Test("shutdown lets in-flight calls end, and answers them")
    func drain() async throws {
        let journal = Journal()
        let server = freeServer()
        await server.expose(SizedStateActor(journal: journal, actorSystem: server.actorSystem), as: "board")
        let peer = try await RawPeer.connect(server.start())
        peer.invoke("c", "board", "hold(_:)", #"["a"]"#)
        await journal.wait(for: "a began")
        let stopping = Task { await server.shutdown(drain: .seconds(30)) }
        #expect(try await peer.next()?.type == "goAway")
        journal.record("a go")
        let answer = try #require(await peer.next())
        #expect(answer.payload.callID == "c")
        #expect(answer.payload.result == 0)
        #expect(try await peer.next() == nil)
        await stopping.value
    }

    @Test("shutdown notifies many clients in batches, with different reconnect delays, and closes all with 1001")
    func crowd() async throws {
        let server = freeServer()
        let address = try await server.start()
        var peers: [RawPeer] = []
        for _ in 0..<250 { peers.append(try await RawPeer.connect(address)) }
        let goers = peers.prefix(20)
        // Clients that leave during the notification no longer receive it.
        let stopping = Task { await server.shutdown(drain: .seconds(1)) }
        for peer in goers { peer.abort() }
        var delays: Set<Int> = []
        for peer in peers.dropFirst(20) {
            let message = try #require(await peer.next())
            #expect(message.type == "goAway")
            let delay = try #require(message.payload.reconnectAfterMilliseconds)
            #expect((0..<2_000).contains(delay))
            delays.insert(delay)
            #expect(try await peer.next() == nil)
        }
        #expect(delays.count > 150, "230 draws from 2,000")
        await stopping.value
        #expect(await server.connectionCount == 0)
    }

    @Test("shutdown cancels calls that exceed the drain time")
    func drainLimit() async throws {
        let journal = Journal()
        let server = freeServer()
        await server.expose(SizedStateActor(journal: journal, actorSystem: server.actorSystem), as: "board")
        let peer = try await RawPeer.connect(server.start())
        peer.invoke("c", "board", "hold(_:)", #"["a"]"#)
        await journal.wait(for: "a began")
        await server.shutdown(drain: .zero)
        await journal.wait(for: "a was cancelled")
    }

    @Test("a connection that was still in its handshake gets no session from a stopped server")
    func lateUpgrade() async throws {
        let server = freeServer()
        let address = try await server.start()
        let early = PlainSocket(address)
        // Later connections are open, so this one was accepted, if by the same reactor.
        let peers = [try await RawPeer.connect(address), try await RawPeer.connect(address)]
        await server.shutdown(drain: .zero)
        // It may be closed already: a connection that was not accepted ends with a reset.
        let isTaken = early.trySend(Array(PlainSocket.upgrade.utf8))
        #expect(await onThread { !isTaken || !early.receives(status: 101) })
        #expect(await eventually { await server.connectionCount == 0 })
        early.close(reset: true)
        withExtendedLifetime(peers) {}
    }
}

private enum SignalState {
    /// Whether the signal has its default action.
    static func isDefault(_ signal: Int32) -> Bool {
        var action = sigaction()
        sigaction(signal, nil, &action)
        // Valid because a handler is a pointer to a C function, and SIG_DFL is the null pointer.
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 0
    }
}

import TestSupport
import Testing

@testable import Networking
import Transports
@testable import WebSockets

@Suite("Keepalive and limits of a connection", .dedicatedThreads)
struct KeepaliveTests {
    private func times(_ change: (inout WebSocketLimits) -> Void = { _ in }) -> Keepalive.Times {
        var limits = WebSocketLimits()
        change(&limits)
        return Keepalive.Times(limits)
    }

    @Test("a silent peer gets one ping after 20 s and is disconnected after 40 s")
    func silence() {
        let times = times()
        #expect(times.beat == .seconds(5))
        var keepalive = Keepalive()
        var actions: [Keepalive.Action] = []
        for _ in 0..<8 { actions.append(keepalive.beat(times)) }
        #expect(actions.dropLast() == [.nothing, .nothing, .nothing, .ping, .nothing, .nothing, .nothing])
        #expect(actions.last == .drop("the peer did not respond to a ping"))
    }

    @Test("a peer that answers pings stays connected")
    func answers() {
        let times = times()
        var keepalive = Keepalive()
        var pings = 0
        for _ in 0..<100 {
            switch keepalive.beat(times) {
            case .ping:
                pings += 1
                keepalive.hasReceivedInput = true
            case .nothing: break
            default: Issue.record("given up")
            }
        }
        #expect(pings == 20)
    }

    @Test("without an interval there are no pings; pongs do not keep an idle connection open")
    func settings() {
        let never = times { $0.pingInterval = nil }
        var keepalive = Keepalive()
        for _ in 0..<70_000 {
            let action = keepalive.beat(never)
            #expect(action == .nothing)
        }

        let idle = times { $0.idleTimeout = .seconds(60) }
        keepalive = Keepalive()
        var beats = 0
        var action = Keepalive.Action.nothing
        while action != .closeIdle, beats < 100 {
            keepalive.hasReceivedInput = true
            action = keepalive.beat(idle)
            beats += 1
        }
        #expect(beats == 12)
    }

    @Test("control frames are counted in each beat")
    func controlFrames() {
        let times = times { $0.controlFramesPerSecond = 10 }
        var keepalive = Keepalive()
        for _ in 0..<3 {
            for _ in 0..<50 {
                let isAllowed = keepalive.countControlFrame(times)
                #expect(isAllowed)
            }
            let isAllowed = keepalive.countControlFrame(times)
            #expect(!isAllowed)
            _ = keepalive.beat(times)
        }
    }

    @Test(
        "an address counts separately, an IPv6 network as one, and loopback not at all",
        arguments: [
            (["192.0.2.1", "192.0.2.1", "192.0.2.1"], [true, true, false]),
            (["192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.2"], [true, true, true, true]),
            (
                ["2001:db8:1:2::1", "2001:db8:1:2::2", "2001:db8:1:2:ff::", "2001:db8:1:3::"],
                [true, true, false, true]
            ),
            (["127.0.0.1", "127.0.0.1", "127.3.2.1", "::1", "::1", "::1"], [true, true, true, true, true, true]),
        ])
    func addresses(_ hosts: [String], _ expected: [Bool]) {
        let counter = AddressCounter(limit: 2)
        var entries: [CountedConnection?] = []
        let admitted = hosts.map { host in
            guard case .admitted(let entry) = counter.enter(SocketAddress(literal: host, port: 1)) else { return false }
            entries.append(entry)
            return true
        }
        #expect(admitted == expected)
        // Closed connections make room.
        entries = []
        guard case .admitted = counter.enter(SocketAddress(literal: hosts[0], port: 1)) else {
            Issue.record("closed connections make no room")
            return
        }
    }

    @Test("a slow message has a time limit from its first byte; complete ones restart it", arguments: [false, true])
    func unfinished(isFragmented: Bool) throws {
        var limits = WebSocketLimits()
        limits.pingInterval = .milliseconds(40)
        limits.pongTimeout = .seconds(60)
        limits.messageTimeout = .milliseconds(100)
        let server = try EchoServer(limits: limits)
        let peer = try RawPeer.upgraded(port: server.port)
        // Two pieces that are soon complete: each message restarts the limit.
        for _ in 0..<3 {
            let whole = text("in two pieces")
            try peer.send(Array(whole.prefix(5)))
            try peer.send(Array(whole.dropFirst(5)))
            #expect(try Self.next(peer) == RawPeer.Frame(opcode: 1, payload: Array("in two pieces".utf8)))
        }
        try peer.send(isFragmented ? text("fragment", fin: false) : Array(text("cut by the network").dropLast()))
        let answer = try Self.next(peer)
        #expect(answer.opcode == 8)
        #expect(answer.payload.prefix(2).elementsEqual([0x03, 0xF0]))
        #expect(String(decoding: answer.payload.dropFirst(2), as: UTF8.self).contains("messageTimeout"))
    }

    /// The next frame that is not a ping.
    private static func next(_ peer: RawPeer) throws -> RawPeer.Frame {
        while true {
            let frame = try peer.receiveFrame()
            if frame.opcode != 9 { return frame }
        }
    }

    @Test("beats notice an unfinished message that makes no progress")
    func unfinishedBeats() {
        let times = times()
        var keepalive = Keepalive()
        for _ in 0..<5 {
            keepalive.hasReceivedInput = true
            let action = keepalive.beat(times, isUnfinished: true)
            #expect(action == .nothing)
        }
        keepalive.hasReceivedInput = true
        let last = keepalive.beat(times, isUnfinished: true)
        #expect(last == .closeUnfinished)
    }

    @Test("a peer that does not answer pings is closed on a real connection, one that does stays")
    func realConnection() async throws {
        var limits = WebSocketLimits()
        // Time is counted in beats, each a quarter of this. Two hundred short beats, each a little late on a busy reactor, would take
        // longer than the peer waits.
        limits.pingInterval = .seconds(1)
        // Long enough for a busy machine to answer.
        limits.pongTimeout = .seconds(2)
        let server = try EchoServer(limits: limits)
        let silent = try RawPeer.upgraded(port: server.port)
        // This client answers pings automatically.
        let alive = try await WebSocketClient.connect(to: "ws://127.0.0.1:\(server.port)/") { _ in EchoHandler() }
        // The raw peer gets the ping and does not answer; then the connection ends.
        #expect(try silent.receiveFrame().opcode == 0x9)
        #expect(try silent.receiveToEnd() == [], "one ping is enough")
        for _ in 0..<3 { await alive.reactor.perform {} }
        #expect(await alive.reactor.perform { alive.isOpen })
        alive.close()
        await server.server.shutdown()
    }

    /// Answers each message with 16 MiB, and publishes its socket.
    private final class FloodingPeer: WebSocketHandler {
        private let sockets: AsyncStream<WebSocket>.Continuation

        init(_ sockets: AsyncStream<WebSocket>.Continuation) { self.sockets = sockets }

        func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode)
        {
            let part = [UInt8](repeating: 7, count: 1 << 20)
            for _ in 0..<16 { part.withUnsafeBytes { socket.send(.binary, $0) } }
            sockets.yield(socket)
        }

        func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {}
    }

    @Test("a peer that reads slowly stays connected while it reads, though its pong is late; then it is disconnected")
    func slowReader() async throws {
        let (sockets, continuation) = AsyncStream.makeStream(of: WebSocket.self)
        var limits = WebSocketLimits()
        // The test triggers the beats, however long that takes.
        limits.pingInterval = .seconds(3_600)
        limits.pongTimeout = .seconds(3_600)
        let server = try WebSocketServer(port: 0, limits: limits, accept: { _ in .accept(FloodingPeer(continuation)) })
        let peer = try RawPeer.upgraded(port: server.address.port, receiveBuffer: 64 << 10)
        try peer.send(text("all of it"))
        let socket = try #require(await sockets.first { _ in true })
        let reactor = socket.reactor
        for _ in 0..<12 {
            // Until the ping is due, and the peer's kernel accepts no more: the number of beats varies.
            var isDue = false
            while !isDue {
                isDue = await reactor.perform {
                    let wasOverdue = socket.keepalive.isOverdue(socket.times.keepalive)
                    socket.beat()
                    return wasOverdue && socket.keepalive.isOverdue(socket.times.keepalive)
                }
            }
            let before = await reactor.perform { socket.channel.socket.delivery?.acknowledged ?? 0 }
            _ = try peer.receive(1 << 20)
            // The peer's kernel reports it a little later.
            let isTaken = await eventually {
                await reactor.perform { socket.channel.socket.delivery?.acknowledged ?? 0 > before }
            }
            #expect(isTaken)
            await reactor.perform { socket.beat() }
            #expect(await reactor.perform { socket.isOpen && !socket.keepalive.isOverdue(socket.times.keepalive) })
        }
        // Its kernel may accept some more.
        let isGivenUp = await eventually {
            await reactor.perform {
                socket.beat()
                return !socket.isOpen
            }
        }
        #expect(isGivenUp)
        await server.shutdown()
    }

    /// Echoes its input, and publishes its socket.
    private final class SocketPublisher: WebSocketHandler {
        private let sockets: AsyncStream<WebSocket>.Continuation

        init(_ sockets: AsyncStream<WebSocket>.Continuation) { self.sockets = sockets }

        func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode)
        {
            sockets.yield(socket)
            socket.send(opcode, UnsafeRawBufferPointer(message))
        }
        func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {}
    }

    @Test("a peer that sends messages is not idle; one that sends none is closed with 1001")
    func idle() async throws {
        let (sockets, continuation) = AsyncStream.makeStream(of: WebSocket.self)
        var limits = WebSocketLimits()
        // Two beats, triggered by the test.
        limits.pingInterval = .seconds(3_600)
        limits.idleTimeout = .seconds(1_800)
        let server = try WebSocketServer(
            port: 0, limits: limits, accept: { _ in .accept(SocketPublisher(continuation)) })
        let peer = try RawPeer.upgraded(port: server.address.port)
        try peer.send(text("x"))
        _ = try peer.receiveFrame()
        let socket = try #require(await sockets.first { _ in true })
        for _ in 0..<4 {
            try peer.send(text("x"))
            #expect(try peer.receiveFrame().payload == Array("x".utf8))
            await socket.reactor.perform { socket.beat() }
            #expect(await socket.reactor.perform { socket.isOpen })
        }
        for _ in 0..<2 { await socket.reactor.perform { socket.beat() } }
        let frame = try peer.receiveFrame()
        #expect(frame.opcode == 8 && frame.payload.prefix(2) == [0x03, 0xE9])
        await server.shutdown()
    }
}

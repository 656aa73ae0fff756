import Networking
import Testing

@testable import WebSockets

@Suite("Keepalive and limits of a connection", .ownThreads)
struct KeepaliveTests {
    private func times(_ change: (inout WebSocketLimits) -> Void = { _ in }) -> Keepalive.Times {
        var limits = WebSocketLimits()
        change(&limits)
        return Keepalive.Times(limits)
    }

    @Test("a silent peer gets one ping after 20 s and is given up after 40 s")
    func silence() {
        let times = times()
        #expect(times.beat == .seconds(5))
        var keepalive = Keepalive()
        var actions: [Keepalive.Action] = []
        for _ in 0..<8 { actions.append(keepalive.beat(times)) }
        #expect(actions.dropLast() == [.nothing, .nothing, .nothing, .ping, .nothing, .nothing, .nothing])
        #expect(actions.last == .giveUp("no sign of life from the peer"))
    }

    @Test("a peer that answers pings lives on")
    func answers() {
        let times = times()
        var keepalive = Keepalive()
        var pings = 0
        for _ in 0..<100 {
            switch keepalive.beat(times) {
            case .ping:
                pings += 1
                keepalive.wasHeard = true
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
            keepalive.wasHeard = true
            action = keepalive.beat(idle)
            beats += 1
        }
        #expect(beats == 12)
    }

    @Test("control frames are counted from beat to beat")
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
        "an address counts by itself, an IPv6 network as one, this machine not at all",
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
        var entries: [AddressEntry?] = []
        let admitted = hosts.map { host in
            guard case .admitted(let entry) = counter.enter(SocketAddress(literal: host, port: 1)) else { return false }
            entries.append(entry)
            return true
        }
        #expect(admitted == expected)
        // Who has gone makes room.
        entries = []
        guard case .admitted = counter.enter(SocketAddress(literal: hosts[0], port: 1)) else {
            Issue.record("no room after all have gone")
            return
        }
    }

    @Test("a peer that does not answer pings is closed on a real connection, one that does stays")
    func realConnection() async throws {
        var limits = WebSocketLimits()
        limits.pingInterval = .milliseconds(40)
        // Long enough for a busy machine to answer.
        limits.pongTimeout = .seconds(2)
        let server = try EchoServer(limits: limits)
        let silent = try RawPeer.upgraded(port: server.port)
        // Ours answers pings by itself.
        let alive = try await WebSocketClient.connect(to: "ws://127.0.0.1:\(server.port)/") { _ in EchoHandler() }
        // The raw peer gets the ping and says nothing; then the connection ends.
        #expect(try silent.receiveFrame().opcode == 0x9)
        #expect(try silent.receiveToEnd() == [], "one ping is enough")
        for _ in 0..<3 { await alive.reactor.perform {} }
        #expect(await alive.reactor.perform { alive.isOpen })
        alive.close()
        await server.server.shutdown()
    }
}

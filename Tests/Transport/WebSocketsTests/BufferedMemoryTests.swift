import Bytes
import Networking
import Platform
import Synchronization
import TestSupport
import Testing

import Transports
@testable import WebSockets

@Suite("Buffered memory of connections", .dedicatedThreads, .timeLimit(.minutes(5)))
struct BufferedMemoryTests {
    /// The complete first fragment of a message of `count` bytes.
    private func startedMessage(_ count: Int) -> [UInt8] { frame(2, [UInt8](repeating: 1, count: count), fin: false) }

    private func closing(_ peer: RawPeer) throws -> (code: UInt16, reason: String) {
        let frame = try peer.receiveFrame()
        #expect(frame.opcode == 8)
        return (
            UInt16(frame.payload[0]) << 8 | UInt16(frame.payload[1]),
            String(decoding: frame.payload.dropFirst(2), as: UTF8.self)
        )
    }

    @Test("buffered bytes count for connection, host, principal and server, and only while they are buffered")
    func account() throws {
        let (server, address, principal) = (
            MemoryBudget(limit: 1000), MemoryBudget(limit: 600), MemoryBudget(limit: 500)
        )
        var first: MemoryAccount? = MemoryAccount(limit: 400, address: address, server: server)
        let second = MemoryAccount(limit: 400, address: address, server: server)
        try first?.reserve(300)
        #expect(throws: MemoryLimitExceeded(.connection, 400)) { try first?.reserve(101) }
        try second.reserve(200)
        #expect(throws: MemoryLimitExceeded(.address, 600)) { try second.reserve(101) }
        first?.join(principal)
        second.join(principal)
        #expect(principal.usedBytes == 500)
        #expect(throws: MemoryLimitExceeded(.principal, 500)) { try second.reserve(1) }
        #expect(server.usedBytes == 500)
        server.adjustUsage(by: 450)
        #expect(throws: MemoryLimitExceeded(.server, 1000)) {
            try MemoryAccount(limit: 400, server: server).reserve(51)
        }
        server.release(450)
        second.release(150)
        first = nil
        #expect([server.usedBytes, address.usedBytes, principal.usedBytes] == [50, 50, 50])
    }

    @Test("existing bytes count; beyond a limit a connection with much memory ends, one with little does not")
    func exemptBytes() {
        let server = MemoryBudget(limit: 1 << 20)
        server.adjustUsage(by: 1 << 20)
        let account = MemoryAccount(limit: 1 << 20, server: server)
        #expect(account.adjustUsage(by: MemoryAccount.small) == nil)
        #expect(account.adjustUsage(by: 1) == MemoryLimitExceeded(.server, 1 << 20))
        #expect(account.adjustUsage(by: -1) == nil, "a decrease exceeds no limit")
        server.adjustUsage(by: 1 << 20)
        let other = MemoryAccount(limit: 1 << 20, server: server)
        #expect(
            other.adjustUsage(by: 4096) == MemoryLimitExceeded(.server, 1 << 20),
            "beyond twice the limit small connections end, too")
    }

    @Test("every reason fits into a close frame")
    func reasons() {
        for holder in [MemoryLimitExceeded.Scope.connection, .address, .principal, .server] {
            #expect(MemoryLimitExceeded(holder, 1_234_567_890_123).reason.utf8.count <= 123)
        }
    }

    @Test("an unfinished message over the connection's limit ends it with a reason that names the setting")
    func connection() throws {
        var limits = WebSocketLimits()
        limits.bufferedBytesPerConnection = 200 << 10
        let server = try EchoServer(limits: limits)
        let peer = try RawPeer.upgraded(port: server.port)
        try peer.send(startedMessage(100 << 10))
        try peer.send(frame(0, [UInt8](repeating: 1, count: 300 << 10), fin: false))
        let (code, reason) = try closing(peer)
        #expect(code == 1008)
        #expect(reason.contains("memory.perConnection"))
    }

    /// Takes longer for a message than a turn gives to long steps.
    private final class SlowHandler: WebSocketHandler, Sendable {
        let messages = Mutex(0)

        func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode)
        {
            let end = MonotonicClock.now + 5_000_000
            while MonotonicClock.now < end {}
            messages.withLock { $0 += 1 }
        }

        func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {}
    }

    @Test("a large message that waits for its step is delivered before the end of its connection")
    func endAfterMessage() async throws {
        let handler = SlowHandler()
        let server = try WebSocketServer(port: 0, limits: WebSocketLimits(), memory: MemoryBudget(limit: 1 << 30)) {
            _ in
            .accept(handler)
        }
        for _ in 0..<20 {
            let peer = try RawPeer.upgraded(port: server.address.port)
            try peer.send(frame(2, [UInt8](repeating: 1, count: 20 << 10)))
        }
        #expect(await eventually { handler.messages.withLock { $0 } == 20 })
        await server.shutdown()
    }

    @Test("beyond a host's limit a connection with more bytes is closed and new ones get 503, others continue")
    func address() async throws {
        var limits = WebSocketLimits()
        limits.bufferedBytesPerHost = 320 << 10
        let budget = MemoryBudget(limit: 1 << 30)
        let server = try WebSocketServer(port: 0, limits: limits, memory: budget) { _ in .accept(EchoHandler()) }
        let holders = try (0..<2).map { _ in try RawPeer.upgraded(port: server.address.port) }
        let honest = try RawPeer.upgraded(port: server.address.port)
        for holder in holders { try holder.send(startedMessage(120 << 10)) }
        #expect(await eventually { budget.usedBytes >= 240 << 10 })
        let late = try RawPeer.upgraded(port: server.address.port)
        try late.send(startedMessage(120 << 10))
        let (code, reason) = try closing(late)
        #expect(code == 1013)
        #expect(reason.contains("memory.perHost"))
        // It still holds its message until it is closed.
        let newcomer = try RawPeer(port: server.address.port)
        try newcomer.send(RawPeer.upgrade())
        #expect(try newcomer.receiveHead().hasPrefix("HTTP/1.1 503 "))
        #expect(String(decoding: try newcomer.receiveToEnd(), as: UTF8.self).contains("memory.perHost"))
        try late.send(close(1013))
        _ = try late.receiveToEnd()
        // A small unfinished message is harmless.
        try honest.send(startedMessage(20 << 10))
        try honest.send(frame(0, [2]))
        #expect(try honest.receiveFrame().payload.count == (20 << 10) + 1)
        for holder in holders {
            try holder.send(frame(0, [2]))
            #expect(try holder.receiveFrame().payload.count == (120 << 10) + 1)
        }
        #expect(await eventually { budget.usedBytes == 0 })
        _ = try RawPeer.upgraded(port: server.address.port)
        await server.shutdown()
    }

    @Test("at the server's memory limit new connections get 503 and large ones are closed, all others continue")
    func server() async throws {
        let budget = MemoryBudget(limit: 1 << 20)
        let server = try WebSocketServer(port: 0, memory: budget) { _ in .accept(EchoHandler()) }
        let (big, small) = (
            try RawPeer.upgraded(port: server.address.port), try RawPeer.upgraded(port: server.address.port)
        )
        budget.adjustUsage(by: 1 << 20)
        let newcomer = try RawPeer(port: server.address.port)
        try newcomer.send(RawPeer.upgrade())
        #expect(try newcomer.receiveHead().hasPrefix("HTTP/1.1 503 "))
        #expect(String(decoding: try newcomer.receiveToEnd(), as: UTF8.self).contains("memory.total"))
        try big.send(startedMessage(120 << 10))
        let (code, reason) = try closing(big)
        #expect(code == 1013)
        #expect(reason.contains("memory.total"))
        #expect(await eventually { budget.usedBytes == 1 << 20 })
        try small.send(startedMessage(20 << 10))
        try small.send(frame(0, [2]))
        #expect(try small.receiveFrame().payload.count == (20 << 10) + 1)
        budget.release(1 << 20)
        _ = try RawPeer.upgraded(port: server.address.port)
        await server.shutdown()
    }

    @Test("unsent responses are counted until the peer receives them or disconnects", arguments: [false, true])
    func output(isTaken: Bool) async throws {
        let budget = MemoryBudget(limit: 1 << 30)
        let server = try WebSocketServer(port: 0, memory: budget) { _ in .accept(EchoHandler()) }
        let peer = try RawPeer.upgraded(port: server.address.port, receiveBuffer: 4096)
        let count = 500
        try peer.send((0..<count).flatMap { _ in text("64 KiB") })
        #expect(await eventually { budget.usedBytes >= 64 << 10 })
        if isTaken {
            for _ in 0..<count { #expect(try peer.receiveFrame().payload.count == 65_536) }
        } else {
            peer.reset()
        }
        #expect(await eventually { budget.usedBytes == 0 })
        await server.shutdown()
    }

    @Test("responses over the connection's limit end it, though the peer receives none of them")
    func outputOverShare() async throws {
        var limits = WebSocketLimits()
        limits.bufferedBytesPerConnection = 150 << 10
        limits.closeTimeout = .milliseconds(100)
        var server = try EchoServer(limits: limits)
        let peer = try RawPeer.upgraded(port: server.port, receiveBuffer: 4096)
        try peer.send((0..<500).flatMap { _ in text("64 KiB") })
        // The close frame waits behind them, in vain.
        let ending = await server.nextEnding()
        #expect(ending == EchoHandler.Ending(code: .abnormal, reason: "no close frame was received in time"))
    }

    @Test("shared bytes are counted once, as long as they are referenced")
    func shared() {
        let budget = MemoryBudget(limit: 1 << 20)
        var bytes: SharedBytes? = [UInt8](repeating: 1, count: 10_000).withUnsafeBytes {
            SharedBytes($0, countedIn: budget)
        }
        let holders = [bytes, bytes]
        #expect(budget.usedBytes == 10_000)
        bytes = nil
        #expect(budget.usedBytes == 10_000)
        withExtendedLifetime(holders) {}
    }
}

@Suite("Readers of large versions", .dedicatedThreads, .timeLimit(.minutes(5)))
struct SlowReaderTests {
    /// Sends large shared bytes when a connection opens.
    private final class Publisher: WebSocketHandler {
        static let version = SharedBytes.make(16 << 20)
        let endings: AsyncStream<EchoHandler.Ending>.Continuation
        init(_ endings: AsyncStream<EchoHandler.Ending>.Continuation) { self.endings = endings }

        func webSocketDidOpen(_ socket: WebSocket) {
            socket.sendShared(.binary, headCount: 1, head: { $0.append(1 as UInt8) }, shared: Self.version)
        }
        func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode)
        {}
        func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {
            endings.yield(EchoHandler.Ending(code: code, reason: reason))
        }
    }

    private func server(patience: Duration) throws -> (WebSocketServer, AsyncStream<EchoHandler.Ending>) {
        var limits = WebSocketLimits()
        limits.sharedBytesUnsent = 256 << 10
        limits.sharedBytesTimeout = patience
        let (stream, endings) = AsyncStream.makeStream(of: EchoHandler.Ending.self)
        return (try WebSocketServer(port: 0, limits: limits) { _ in .accept(Publisher(endings)) }, stream)
    }

    @Test("a peer that does not receive versions loses its connection, with a reason that says so")
    func silent() async throws {
        let (server, endings) = try server(patience: .milliseconds(50))
        let peer = try RawPeer.upgraded(port: server.address.port, receiveBuffer: 4096)
        for await ending in endings {
            #expect(ending.code == .abnormal)
            #expect(ending.reason.contains("the peer reads too slowly"))
            #expect(ending.reason.contains("sharedBytesUnsent"))
            break
        }
        withExtendedLifetime(peer) {}
        await server.shutdown()
    }

    @Test("a peer that receives versions slowly gets them")
    func reading() async throws {
        let (server, _) = try server(patience: .seconds(5))
        let peer = try RawPeer.upgraded(port: server.address.port, receiveBuffer: 4096)
        #expect(try peer.receiveFrame().payload.count == (16 << 20) + 1)
        await server.shutdown()
    }
}

extension SharedBytes {
    fileprivate static func make(_ count: Int) -> SharedBytes {
        [UInt8](repeating: 1, count: count).withUnsafeBytes { SharedBytes($0) }
    }
}

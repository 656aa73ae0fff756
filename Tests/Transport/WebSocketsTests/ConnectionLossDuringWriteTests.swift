import Bytes
import Networking
import Synchronization
import Testing

import Transports
@testable import WebSockets

/// The write of a close frame detects the loss of the connection: the gathered output is a few bytes short of an immediate send, and the
/// peer has reset the connection before.
@Suite("A connection loss detected by a write", .dedicatedThreads, .timeLimit(.minutes(5)))
struct ConnectionLossDuringWriteTests {
    /// At its first message it makes the peer reset, gathers nearly the maximum output of a turn, and runs the given action.
    private final class BufferFiller: WebSocketHandler, Sendable {
        let resetPeer: @Sendable () -> Void
        let finally: @Sendable (WebSocket) -> Void
        let ended: AsyncStream<WebSocketCloseCode>.Continuation

        init(
            _ ended: AsyncStream<WebSocketCloseCode>.Continuation, resetPeer: @escaping @Sendable () -> Void,
            finally: @escaping @Sendable (WebSocket) -> Void
        ) {
            self.ended = ended
            self.resetPeer = resetPeer
            self.finally = finally
        }

        func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode)
        {
            resetPeer()
            // A header of 10 bytes, 14 for a client: the next frame exceeds the limit for an immediate send.
            let count = ByteChannel.largestTurn - 14
            socket.send(.binary, expecting: count) { $0.append([UInt8](repeating: 0, count: count)) }
            finally(socket)
        }

        func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) { ended.yield(code) }
    }

    /// Used by one thread at a time.
    ///
    /// `@unchecked Sendable`: the test passes it to `RetainedPeer` and no longer uses it; the lock orders the accesses.
    private struct TransferredPeer: @unchecked Sendable { let peer: RawPeer }

    /// Retains a test's peer, to end it from the reactor.
    private final class RetainedPeer: Sendable {
        private let peer = Mutex<TransferredPeer?>(nil)

        /// Sends bytes that are handled only once the peer is retained.
        func hold(_ sent: TransferredPeer, sending bytes: [UInt8]) throws {
            try self.peer.withLock { retainedPeer in
                retainedPeer = sent
                try sent.peer.send(bytes)
            }
        }
        func reset() {
            let sent = peer.withLock { peer in
                defer { peer = nil }
                return peer
            }
            sent?.peer.reset()
        }
    }

    private var limits: WebSocketLimits {
        var limits = WebSocketLimits()
        limits.closeTimeout = .milliseconds(20)
        return limits
    }

    /// Waits until every timer that the connection may have left behind has fired.
    private func passCloseTimeout(on reactor: Reactor) async {
        await withCheckedContinuation { done in
            reactor.execute { reactor.schedule(after: .milliseconds(60)) { done.resume() } }
        }
    }

    @Test(
        "a close frame, a ping or an abort after the connection loss ends the connection without harm", arguments: 0..<3
    )
    func server(_ kind: Int) async throws {
        let retainedPeer = RetainedPeer()
        let (endings, ended) = AsyncStream.makeStream(of: WebSocketCloseCode.self)
        let sockets = Mutex<[WeakSocket]>([])
        let server = try WebSocketServer(port: 0, limits: limits) { _ in
            .accept(
                BufferFiller(ended, resetPeer: { retainedPeer.reset() }) { socket in
                    sockets.withLock { $0.append(WeakSocket(socket)) }
                    switch kind {
                    case 0: socket.close(code: .policyViolation, reason: "ten messages without sense")
                    case 1: socket.ping([UInt8](repeating: 1, count: 125))
                    default:
                        socket.ping([UInt8](repeating: 1, count: 125))
                        socket.close()
                        socket.abort()
                    }
                })
        }
        var codes = endings.makeAsyncIterator()
        for _ in 0..<3 {
            try retainedPeer.hold(
                TransferredPeer(peer: try RawPeer.upgraded(port: server.address.port)), sending: text("go"))
            #expect(await codes.next() == .abnormal)
        }
        for table in server.tables { await passCloseTimeout(on: table.reactor) }
        #expect(sockets.withLock { $0.allSatisfy { $0.socket == nil } })
        await server.shutdown()
    }

    private struct WeakSocket: Sendable {
        weak var socket: WebSocket?
        init(_ socket: WebSocket) { self.socket = socket }
    }

    @Test("a client whose close response finds the connection lost ends normally")
    func client() async throws {
        let server = try RawServer()
        let retainedPeer = RetainedPeer()
        let (endings, ended) = AsyncStream.makeStream(of: WebSocketCloseCode.self)
        let (url, limits) = (server.url, limits)
        var connecting: Task<WebSocket, any Error>? = Task {
            try await WebSocketClient.connect(to: url, limits: limits) { _ in
                BufferFiller(ended, resetPeer: { retainedPeer.reset() }) { _ in }
            }
        }
        let (peer, request) = try server.accept()
        try peer.send(RawServer.answer(request))
        weak let socket = try await connecting?.value
        connecting = nil
        let reactor = try ReactorGroup.clients().reactors[0]
        // A message and a close frame in one piece: the handler of the first resets before the second is answered.
        try retainedPeer.hold(TransferredPeer(peer: peer), sending: [0x82, 1, 7, 0x88, 2, 0x03, 0xE8])
        for await code in endings {
            #expect(code == .normal)
            break
        }
        await passCloseTimeout(on: reactor)
        #expect(socket == nil)
    }
}

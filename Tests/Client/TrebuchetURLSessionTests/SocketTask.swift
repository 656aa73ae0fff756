import Foundation
import FoundationNetworking
import Networking
import Synchronization
import Transports
import WebSockets

@testable import TrebuchetURLSession

/// Behaves like a `URLSessionWebSocketTask`, on local sockets.
///
/// `@unchecked Sendable`: mutable state is used on `queue` alone, or has a lock.
final class SocketTask: WebSocketTask, WebSocketHandler, @unchecked Sendable {
    typealias Received = @Sendable (Result<URLSessionWebSocketTask.Message, any Error>) -> Void

    private struct State {
        var waiting: Received?
        var messages: [String] = []
        var pings: [@Sendable ((any Error)?) -> Void] = []
        var closing = (code: 0, reason: "")
        var socket: WebSocket?
        var answer: HTTPURLResponse?
        var isOver = false
    }

    private let request: URLRequest
    private let link: URLSessionLink
    private let state = Mutex(State())
    /// Whether pings are dropped before the server.
    private let isDeaf: Bool

    init(_ request: URLRequest, _ link: URLSessionLink, isDeaf: Bool = false) {
        self.request = request
        self.link = link
        self.isDeaf = isDeaf
    }

    func start() {
        Task {
            var headers = HTTPHeaders()
            for (name, value) in request.allHTTPHeaderFields ?? [:]
            where name.lowercased() != "sec-websocket-protocol" {
                headers.add(name, value)
            }
            let subprotocols = [request.value(forHTTPHeaderField: "Sec-WebSocket-Protocol") ?? ""]
            do {
                _ = try await WebSocketClient.connect(
                    to: request.url!.absoluteString, subprotocols: subprotocols, headers: headers
                ) { [self] socket in
                    state.withLock { $0.socket = socket }
                    return self
                }
            } catch {
                let error = error as? TransportError
                if let status = (error?.cause as? UnexpectedHTTPStatus)?.status {
                    state.withLock {
                        $0.answer = HTTPURLResponse(
                            url: request.url!, statusCode: status, httpVersion: nil, headerFields: nil)
                    }
                }
                link.didEnd(URLError(error?.code == .refused ? .cannotConnectToHost : .badServerResponse))
            }
        }
    }

    // MARK: WebSocketHandler

    func webSocketDidOpen(_ socket: WebSocket) {
        let fields = Dictionary(
            socket.responseHeaders.fields.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
        state.withLock {
            $0.answer = HTTPURLResponse(
                url: request.url!, statusCode: 101, httpVersion: nil, headerFields: fields)
        }
        link.didOpen(speaking: socket.subprotocol)
    }

    func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode) {
        let text = String(decoding: message, as: UTF8.self)
        let waiting = state.withLock { state in
            defer { state.waiting = nil }
            if state.waiting == nil { state.messages.append(text) }
            return state.waiting
        }
        waiting?(.success(.string(text)))
    }

    func webSocket(_ socket: WebSocket, didReceivePong payload: UnsafeMutableRawBufferPointer) {
        let ping = state.withLock { $0.pings.isEmpty ? nil : $0.pings.removeFirst() }
        ping?(nil)
    }

    func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {
        let waiting = state.withLock { state in
            state.isOver = true
            if socket.violation == nil { state.closing = (Int(code.rawValue), reason) }
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?(.failure(URLError(.networkConnectionLost)))
        link.didEnd(URLError(.networkConnectionLost))
    }

    // MARK: WebSocketTask

    private func onReactor(_ body: @escaping @Sendable (WebSocket) -> Void) {
        guard let socket = state.withLock({ $0.socket }) else { return }
        socket.reactor.execute { body(socket) }
    }

    func send(_ text: String, _ done: @escaping @Sendable ((any Error)?) -> Void) {
        onReactor {
            $0.send(text: text)
            done(nil)
        }
    }

    func receive(_ done: @escaping Received) {
        let text: String? = state.withLock { state in
            if !state.messages.isEmpty { return state.messages.removeFirst() }
            state.waiting = done
            return nil
        }
        if let text { done(.success(.string(text))) }
    }

    func ping(_ done: @escaping @Sendable ((any Error)?) -> Void) {
        guard !isDeaf else { return }
        state.withLock { $0.pings.append(done) }
        onReactor { $0.ping([]) }
    }

    func close() { onReactor { $0.close() } }
    func abort() { onReactor { $0.abort() } }

    var closing: (code: Int, reason: String) { state.withLock { $0.closing } }
    var answer: HTTPURLResponse? { state.withLock { $0.answer } }
}

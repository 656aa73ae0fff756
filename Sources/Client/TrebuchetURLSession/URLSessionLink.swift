internal import Foundation
internal import Transports
internal import TrebuchetClient

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// A client's connection over Foundation's WebSockets, from the attempt to the end.
final class URLSessionLink: ClientLink {
    /// The state of a connection.
    private enum State {
        case new
        case opening(CheckedContinuation<Void, any Error>)
        case open
        case ended
    }

    /// The time limit for sending pending messages while closing.
    static let closingTime = Duration.seconds(5)

    private let receiver: ConnectionReceiver
    private let request: ConnectionRequest
    private let address: String
    private let own: LoopVariable<Variables>

    /// The part that is used on the client's event loop only.
    private struct Variables {
        var task: (any WebSocketTask)?
        var state = State.new
        /// The timer of the attempt, of the next keepalive check, or of the end.
        var timer: LoopTimer?
        var unsent = 0
        var isClosing = false
        /// True if any input arrived since the last check.
        var hasReceivedInput = true
        var callSession: String?
    }

    var callSession: String? { own.value.callSession }
    private var loop: any EventLoop { receiver.loop }

    init(_ receiver: ConnectionReceiver, _ request: ConnectionRequest, _ address: String) {
        self.receiver = receiver
        self.request = request
        self.address = address
        own = LoopVariable(Variables(), on: receiver.loop)
    }

    // MARK: Opening

    /// Opens the connection. Returns after `opened` was called on the receiver.
    func open(_ make: @escaping @Sendable (URLSessionLink) -> any WebSocketTask) async throws {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                loop.execute { self.start(continuation, make) }
            }
        } onCancel: {
            loop.execute {
                self.close(TransportError(.closed, "the connection attempt to \(self.address) was cancelled"))
            }
        }
    }

    private func start(
        _ continuation: CheckedContinuation<Void, any Error>, _ make: (URLSessionLink) -> any WebSocketTask
    ) {
        guard case .new = own.value.state else { return continuation.resume(throwing: CancellationError()) }
        own.value.state = .opening(continuation)
        let made = make(self)
        own.value.task = made
        own.value.timer = loop.schedule(after: request.timeout, for: self) { link in
            link.close(TransportError(.timedOut, "\(link.address) did not respond within \(link.request.timeout)"))
        }
        made.start()
    }

    /// Handles the server's acceptance of the upgrade. Callable from any thread.
    func didOpen(speaking subprotocol: String?) { loop.run { self.opened(subprotocol) } }

    private func opened(_ subprotocol: String?) {
        guard case .opening(let continuation) = own.value.state else { return }
        let wanted = request.subprotocol
        guard subprotocol == wanted else {
            return close(
                TransportError(
                    .handshake, "\(address) does not support \(wanted): is it a Trebuchet server?",
                    cause: SubprotocolNotSupported(wanted)))
        }
        own.value.callSession = own.value.task?.answer?.value(forHTTPHeaderField: "Trebuchet-Session")
        own.value.state = .open
        own.value.timer?.cancel()
        receiver.linkDidOpen(self)
        continuation.resume()
        receiveNext()
        watch()
    }

    // MARK: Messages

    private func receiveNext() {
        guard case .open = own.value.state else { return }
        own.value.task?.receive { result in self.loop.run { self.receive(result) } }
    }

    private func receive(_ result: Result<URLSessionWebSocketTask.Message, any Error>) {
        guard case .open = own.value.state else { return }
        own.value.hasReceivedInput = true
        switch result {
        case .success(.string(var text)): text.withUTF8 { receiver.didReceive(UnsafeRawBufferPointer($0)) }
        case .success(.data(let data)): data.withUnsafeBytes { receiver.didReceive($0) }
        // Message types may be added in the future; the protocol uses none of them.
        case .success: break
        case .failure(let error): return didEnd(error)
        }
        receiveNext()
    }

    func send(_ message: [UInt8]) {
        guard case .open = own.value.state, !own.value.isClosing else { return }
        own.value.unsent += 1
        own.value.task?.send(String(decoding: message, as: UTF8.self)) { error in
            self.loop.run {
                self.own.value.unsent -= 1
                if let error { return self.didEnd(error) }
                self.closeIfSent()
            }
        }
    }

    // MARK: Keepalive

    /// Schedules the keepalive check: if no input has arrived, it sends a ping.
    private func watch() {
        guard let interval = request.pingInterval, case .open = own.value.state, !own.value.isClosing else { return }
        own.value.hasReceivedInput = false
        own.value.timer = loop.schedule(after: interval, for: self) { link in
            if link.own.value.hasReceivedInput { return link.watch() }
            link.own.value.task?.ping { error in
                link.loop.run { if error == nil { link.own.value.hasReceivedInput = true } }
            }
            link.own.value.timer = link.loop.schedule(after: link.request.pongTimeout, for: link) { link in
                if link.own.value.hasReceivedInput { return link.watch() }
                link.close(TransportError(.timedOut, "no data was received from \(link.address) in time"))
            }
        }
    }

    // MARK: Closing

    func close() {
        guard case .open = own.value.state, !own.value.isClosing else { return }
        own.value.isClosing = true
        own.value.timer?.cancel()
        own.value.timer = loop.schedule(after: Self.closingTime, for: self) { link in link.close(link.closed) }
        closeIfSent()
    }

    private func closeIfSent() {
        guard own.value.isClosing, own.value.unsent == 0 else { return }
        own.value.task?.close()
        close(closed)
    }

    private var closed: TransportError { TransportError(.closed, "the connection to \(address) was closed") }

    /// Handles the end of the connection or of the attempt. Callable from any thread.
    func didEnd(_ error: (any Error)?) {
        loop.run { self.close(self.failure(error)) }
    }

    private func failure(_ error: (any Error)?) -> TransportError {
        if case .open = own.value.state { return .ofClosing(own.value.task?.closing ?? (0, ""), error, address) }
        return .ofOpening(status: own.value.task?.answer?.statusCode, error, address)
    }

    private func close(_ error: TransportError) {
        let before = own.value.state
        own.value.state = .ended
        own.value.timer?.cancel()
        switch before {
        case .ended: return
        case .new: break
        case .opening(let continuation): continuation.resume(throwing: error)
        case .open: receiver.linkDidClose(error)
        }
        if !(own.value.isClosing && own.value.unsent == 0) { own.value.task?.abort() }
        own.value.task = nil
    }
}

internal import CEpoll
internal import Glibc
internal import Platform
internal import Transports

/// Opens connections to a server.
package enum Connector {
    /// Connects to the first address of `host` that answers. Throws `TransportError`: `.refused`, `.timedOut`,
    /// `.addressInvalid`; `CancellationError` when the task is cancelled. The channel is not started.
    package static func connect(
        host: String, port: Int, on reactor: Reactor, timeout: Duration = .seconds(10)
    ) async throws -> ByteChannel {
        let addresses = try await resolve(host: host, port: port)
        var last = TransportError(.addressInvalid, "host '\(host)' has no address")
        for address in addresses {
            let attempt = ConnectAttempt(address, on: reactor, timeout: timeout)
            do {
                return try await withTaskCancellationHandler {
                    try await withCheckedThrowingContinuation { continuation in
                        reactor.execute { attempt.start(continuation) }
                    }
                } onCancel: {
                    reactor.execute { attempt.finish(.failure(CancellationError())) }
                }
            } catch let error as TransportError {
                last = error
            }
        }
        throw last
    }

    /// Looks names up on a thread of its own: `getaddrinfo` blocks.
    private static func resolve(host: String, port: Int) async throws -> [SocketAddress] {
        if let literal = SocketAddress(literal: host, port: port) { return [literal] }
        return try await onThread { try SocketAddress.resolve(host: host, port: port) }
    }
}

/// One try at one address.
///
/// `@unchecked Sendable`: its state is touched on its reactor alone.
private final class ConnectAttempt: ReadinessHandler, @unchecked Sendable {
    private let address: SocketAddress
    private let reactor: Reactor
    private let timeout: Duration
    private var socket: Socket?
    private var timer: LoopTimer?
    private var continuation: CheckedContinuation<ByteChannel, any Error>?
    private var isFinished = false

    init(_ address: SocketAddress, on reactor: Reactor, timeout: Duration) {
        self.address = address
        self.reactor = reactor
        self.timeout = timeout
    }

    func start(_ continuation: CheckedContinuation<ByteChannel, any Error>) {
        guard !isFinished else { return continuation.resume(throwing: CancellationError()) }
        self.continuation = continuation
        do {
            let socket = try Socket.open(for: address)
            self.socket = socket
            let status = socket.connect(to: address)
            guard status == 0 || status == EINPROGRESS else { return fail(status) }
            try reactor.add(socket.descriptor, self, events: EPOLLOUT.rawValue)
            let waited = timeout
            timer = reactor.schedule(after: waited, for: self) { attempt in
                let error = TransportError(.timedOut, "connecting to \(attempt.address): no answer within \(waited)")
                attempt.finish(.failure(error))
            }
        } catch {
            finish(.failure(error))
        }
    }

    override func ready(_ events: UInt32) {
        guard let socket, !isFinished else { return }
        let error = socket.pendingError()
        if error != 0 {
            finish(.failure(TransportError.system("connect", error, "connecting to \(address)")))
        } else {
            self.socket = nil
            reactor.remove(socket.descriptor, self)
            finish(.success(ByteChannel(socket, on: reactor)))
        }
    }

    private func fail(_ number: Int32) {
        finish(.failure(TransportError.system("connect", number, "connecting to \(address)")))
    }

    func finish(_ result: Result<ByteChannel, any Error>) {
        guard !isFinished else { return }
        isFinished = true
        timer?.cancel()
        if let socket {
            if timer != nil { reactor.remove(socket.descriptor, self) }
            socket.close()
            self.socket = nil
        }
        continuation?.resume(with: result)
        continuation = nil
    }
}

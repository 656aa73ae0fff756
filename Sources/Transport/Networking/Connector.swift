internal import CEpoll
internal import Glibc
internal import Platform
internal import Transports

/// Opens connections to a server.
package enum Connector {
    /// Connects to the first address of `host` that answers. The next address is tried when one fails or does not answer within
    /// 250 ms; address families alternate (RFC 8305).
    ///
    /// - Parameter timeout: the time limit for the whole operation, including name resolution.
    /// - Returns: a channel that is not started.
    /// - Throws: `TransportError`: `.refused`, `.timedOut`, `.addressInvalid`; `CancellationError` when the task is cancelled.
    package static func connect(
        host: String, port: Int, on reactor: Reactor, timeout: Duration = .seconds(10)
    ) async throws -> ByteChannel {
        let literal = SocketAddress(literal: host, port: port).map { [$0] }
        return try await connect(to: literal, of: host, port, on: reactor, timeout)
    }

    /// Connects to one of several addresses.
    ///
    /// - Parameter addresses: nil to resolve `host`.
    static func connect(
        to addresses: [SocketAddress]?, of host: String, _ port: Int, on reactor: Reactor, _ timeout: Duration
    ) async throws -> ByteChannel {
        let race = LoopBound(passing: ConnectRace(host, port, on: reactor, timeout: timeout), to: reactor)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                reactor.execute { race.value.start(addresses, continuation) }
            }
        } onCancel: {
            reactor.execute { race.value.finish(.failure(CancellationError())) }
        }
    }
}

/// The concurrent attempts at all addresses of a host; the first that connects wins. Only on its reactor.
private final class ConnectRace {
    /// The time after which the next address is tried in parallel (RFC 8305 §5).
    private static let headStart = Duration.milliseconds(250)

    private let host: String
    private let port: Int
    private let reactor: Reactor
    private let timeout: Duration
    private var waiting: ArraySlice<SocketAddress> = []
    private var attempts: [ConnectAttempt] = []
    private var next: LoopTimer?
    private var limit: LoopTimer?
    private var continuation: CheckedContinuation<ByteChannel, any Error>?
    private var isFinished = false

    init(_ host: String, _ port: Int, on reactor: Reactor, timeout: Duration) {
        self.host = host
        self.port = port
        self.reactor = reactor
        self.timeout = timeout
    }

    func start(_ addresses: [SocketAddress]?, _ continuation: CheckedContinuation<ByteChannel, any Error>) {
        guard !isFinished else { return continuation.resume(throwing: CancellationError()) }
        self.continuation = continuation
        limit = reactor.schedule(after: timeout) { self.timeOut() }
        if let addresses { return didResolve(addresses) }
        let (host, port, reactor, race) = (host, port, reactor, LoopBound(self, on: reactor))
        // `getaddrinfo` blocks and cannot be cancelled.
        startThread {
            let result = Result { () throws(TransportError) -> [SocketAddress] in
                try SocketAddress.resolve(host: host, port: port)
            }
            reactor.execute {
                switch result {
                case .success(let addresses): race.value.didResolve(addresses)
                case .failure(let error): race.value.finish(.failure(error))
                }
            }
        }
    }

    private func didResolve(_ addresses: [SocketAddress]) {
        guard !isFinished else { return }
        waiting = addresses.alternatingFamilies[...]
        startNext()
    }

    private func startNext() {
        next?.cancel()
        guard !isFinished, let address = waiting.popFirst() else { return }
        let attempt = ConnectAttempt(address, on: reactor)
        attempts.append(attempt)
        if !waiting.isEmpty { next = reactor.schedule(after: Self.headStart) { self.startNext() } }
        attempt.start { result in
            switch result {
            case .success(let channel): self.finish(.success(channel))
            case .failure(let error): self.failed(attempt, error)
            }
        }
    }

    private func failed(_ attempt: ConnectAttempt, _ error: TransportError) {
        attempts.removeAll { $0 === attempt }
        if !waiting.isEmpty { return startNext() }
        if attempts.isEmpty { finish(.failure(error)) }
    }

    private func timeOut() {
        let what =
            attempts.first.map { "connecting to \($0.address): no response" } ?? "resolving '\(host)': no response"
        finish(.failure(TransportError(.timedOut, "\(what) within \(timeout)")))
    }

    func finish(_ result: Result<ByteChannel, any Error>) {
        guard !isFinished else { return }
        isFinished = true
        next?.cancel()
        limit?.cancel()
        for attempt in attempts { attempt.cancel() }
        attempts = []
        continuation?.resume(with: result)
        continuation = nil
    }
}

/// A connection attempt to one address. Only on its reactor.
private final class ConnectAttempt: ReadinessHandler {
    typealias Outcome = Result<ByteChannel, TransportError>

    let address: SocketAddress
    private let reactor: Reactor
    private var socket: Socket?
    private var isWatched = false
    private var completion: ((Outcome) -> Void)?

    init(_ address: SocketAddress, on reactor: Reactor) {
        self.address = address
        self.reactor = reactor
    }

    /// Starts the attempt. Calls `completion` once, unless the attempt is cancelled.
    func start(_ handler: @escaping (Outcome) -> Void) {
        self.completion = handler
        do throws(TransportError) {
            let socket = try Socket.open(for: address)
            self.socket = socket
            let status = socket.connect(to: address)
            guard status == 0 || status == EINPROGRESS else { return fail(status) }
            try reactor.watchDescriptor(socket.descriptor, self, events: EPOLLOUT.rawValue)
            isWatched = true
        } catch {
            finish(.failure(error))
        }
    }

    override func ready(_ events: UInt32) {
        guard let socket, completion != nil else { return }
        let error = socket.pendingError()
        guard error == 0 else { return fail(error) }
        release()
        finish(.success(ByteChannel(socket, on: reactor)))
    }

    func cancel() {
        completion = nil
        close()
    }

    private func fail(_ number: Int32) {
        finish(.failure(TransportError.system("connect", number, "connecting to \(address)")))
    }

    private func finish(_ outcome: Outcome) {
        close()
        let handler = completion
        self.completion = nil
        handler?(outcome)
    }

    private func close() {
        guard let socket else { return }
        release()
        socket.close()
    }

    /// Gives up ownership of the socket.
    private func release() {
        if isWatched, let socket { reactor.remove(socket.descriptor, self) }
        isWatched = false
        socket = nil
    }
}

extension [SocketAddress] {
    /// The addresses with alternating families, each family in its order.
    fileprivate var alternatingFamilies: [SocketAddress] {
        guard let first, contains(where: { $0.isIPv6 != first.isIPv6 }) else { return self }
        var (own, other) = (filter { $0.isIPv6 == first.isIPv6 }[...], filter { $0.isIPv6 != first.isIPv6 }[...])
        var all: [SocketAddress] = []
        while !own.isEmpty || !other.isEmpty {
            if let address = own.popFirst() { all.append(address) }
            if let address = other.popFirst() { all.append(address) }
        }
        return all
    }
}

internal import Transports
internal import Relays

/// A receiver of the events of a client's connection.
protocol ClientConnectionDelegate: AnyObject {
    /// Called when calls and streams use this link from now on.
    func connection(uses link: any ClientLink, number: Int)
    /// Called when a link is lost: calls sent over it get no response.
    func connectionLost(number: Int, _ error: TransportError)
    /// Returns the number of calls that were sent over the link and have no response.
    func callsUnderWay(number: Int) -> Int
    /// True if calls or streams wait for a connection.
    var needsConnection: Bool { get }
    /// Called before the user closes the client.
    func connectionWillClose()
    /// Called when the client stops trying to connect until the user requests it again.
    func connectionAbandoned(_ error: TransportError)
}

/// Keeps a client connected: it performs the effects of its state machine.
///
/// `@unchecked Sendable`: accessed only on the client's event loop, except for `states`, which any thread may read.
final class ClientConnection: @unchecked Sendable {
    /// Opens the link of an attempt, which reports `opened` and later `lost`.
    typealias Opener = @Sendable (_ attempt: Int) async throws -> Void

    let states = StateRelay<TrebuchetClient.ConnectionState>(.disconnected(nil))
    weak var delegate: (any ClientConnectionDelegate)?

    private let loop: any EventLoop
    private let hasTokenProvider: Bool
    private var machine: ConnectionMachine
    private var opener: Opener?
    private var links: [Int: any ClientLink] = [:]
    /// The links that are closed when their calls have responses.
    private var leaving: Set<Int> = []
    private var attempt: Task<Void, Never>?
    private var retry: LoopTimer?
    private var waiting: [LoopWaiter] = []
    /// True if only callers of `connect` have requested the current attempt.
    private var hasOnlyWaiters = false
    /// The callers that wait until links are closed.
    private var closers: [(links: Set<Int>, waiter: LoopWaiter)] = []

    init(loop: any EventLoop, policy: ReconnectPolicy, addresses: Int, hasTokenProvider: Bool) {
        self.loop = loop
        self.hasTokenProvider = hasTokenProvider
        machine = ConnectionMachine(policy: policy, addresses: addresses)
    }

    /// True if there will be a connection without another request.
    var isExpected: Bool {
        switch machine.state {
        case .connecting, .connected, .draining: true
        case .disconnected, .closed: false
        }
    }

    /// True if the current server has sent `goAway` and another connection will follow.
    var isBeingReplaced: Bool { machine.isBeingReplaced }

    /// True if there will never be a connection again.
    var isClosed: Bool { machine.state == .closed }

    // MARK: User requests

    /// Returns when there is a connection. Throws if the client gives up, and `CancellationError` when the task is cancelled. An
    /// attempt that was started only for callers of this method ends with the last of them.
    func connect(_ opener: @escaping Opener) async throws {
        try await wait { waiter in
            guard !waiter.isCancelled else { return }
            if !self.isExpected { self.hasOnlyWaiters = true }
            self.opener = opener
            self.waiting.append(waiter)
            self.handle(.connectRequested)
        }
    }

    /// Runs `begin` on the loop, and returns when the waiter is finished or the task is cancelled.
    private func wait(_ begin: @escaping @Sendable (LoopWaiter) -> Void) async throws {
        let waiter = LoopBound(passing: LoopWaiter(), to: loop)
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                loop.run {
                    waiter.value.start(continuation)
                    begin(waiter.value)
                }
            }
        } onCancel: {
            loop.execute { self.cancel(waiter.value) }
        }
    }

    private func cancel(_ waiter: LoopWaiter) {
        waiter.cancel()
        closers.removeAll { $0.waiter === waiter }
        guard waiting.contains(where: { $0 === waiter }) else { return }
        waiting.removeAll { $0 === waiter }
        guard waiting.isEmpty, hasOnlyWaiters, delegate?.needsConnection != true else { return }
        handle(.disconnectRequested)
    }

    /// Requests a connection unless one is expected, without waiting for it.
    func connectIfNeeded(_ opener: @escaping Opener) {
        loop.run {
            self.hasOnlyWaiters = false
            guard !self.isExpected else { return }
            self.opener = opener
            self.handle(.connectRequested)
        }
    }

    /// Disconnects. Returns when the last link is closed or the task is cancelled; new links may follow later.
    func disconnect() async { await releaseLink(.disconnectRequested) }

    /// Closes the client. Returns when the last link is closed or the task is cancelled.
    func close() async { await releaseLink(.closeRequested) }

    private func releaseLink(_ input: ConnectionMachine.Input) async {
        try? await wait { waiter in
            self.closers.append((Set(self.links.keys), waiter))
            if case .closeRequested = input { self.delegate?.connectionWillClose() }
            self.handle(input)
            self.leaving = []
            // Includes the links that were kept for their calls.
            for link in self.links.values { link.close() }
            self.resumeClosers()
        }
    }

    func link(number: Int) -> (any ClientLink)? { links[number] }

    // MARK: Link events

    func opened(_ link: any ClientLink, number: Int) {
        links[number] = link
        handle(.connected(number))
    }

    func lost(number: Int, _ error: TransportError) {
        guard links.removeValue(forKey: number) != nil else { return }
        leaving.remove(number)
        delegate?.connectionLost(number: number, error)
        handle(.connectionLost(number, error))
        resumeClosers()
    }

    /// Drops a link after a fatal error.
    func abandon(number: Int, _ error: TransportError) {
        let link = links[number]
        lost(number: number, error)
        link?.close()
    }

    func goAway(number: Int, reconnectAfter delay: Duration) { handle(.goAway(number, reconnectAfter: delay)) }

    /// Handles the response of a call: a link that was kept only for its calls may be closed.
    func callEnded(number: Int) {
        guard leaving.contains(number), delegate?.callsUnderWay(number: number) ?? 0 == 0 else { return }
        leaving.remove(number)
        links[number]?.close()
    }

    // MARK: Effects

    private func handle(_ input: ConnectionMachine.Input) {
        for effect in machine.handle(input, at: loop.now, random: .random(in: 0..<1)) { perform(effect) }
    }

    private func perform(_ effect: ConnectionMachine.Effect) {
        switch effect {
        case .startConnecting(let number): start(number)
        case .abandon: attempt?.cancel()
        case .scheduleRetry(let number, let delay):
            retry = loop.schedule(after: delay) { [weak self] in self?.handle(.retryTimerFired(number)) }
        case .cancelRetry: retry?.cancel()
        case .activateLink(let number):
            if let link = links[number] { delegate?.connection(uses: link, number: number) }
        case .drop(let number): drop(number)
        case .notify(let state): states.update(state)
        case .releaseWaiting:
            let released = waiting
            waiting = []
            hasOnlyWaiters = false
            for waiter in released { waiter.finish() }
        case .failWaiting(let error):
            let failed = waiting
            waiting = []
            hasOnlyWaiters = false
            for waiter in failed { waiter.finish(error) }
            delegate?.connectionAbandoned(error)
        }
    }

    private func start(_ number: Int) {
        guard let opener else { return }
        loop.holdTime()
        attempt = Task(executorPreference: loop.taskExecutor) { [loop, hasTokenProvider] in
            defer { loop.releaseTime() }
            do {
                try await opener(number)
            } catch {
                let failure = ConnectionFailure(error, hasTokenProvider: hasTokenProvider)
                loop.run { self.handle(.attemptFailed(number, failure)) }
            }
        }
    }

    /// Closes a link, but keeps a replaced link until its in-flight calls have responses.
    private func drop(_ number: Int) {
        if machine.state != .closed, delegate?.callsUnderWay(number: number) ?? 0 > 0 {
            leaving.insert(number)
        } else {
            links[number]?.close()
        }
    }

    private func resumeClosers() {
        let ready = closers.filter { $0.links.isDisjoint(with: links.keys) }
        closers.removeAll { $0.links.isDisjoint(with: links.keys) }
        for closer in ready { closer.waiter.finish() }
    }
}

/// A task that waits for an event on the loop. Only on the loop.
private final class LoopWaiter {
    private var continuation: CheckedContinuation<Void, any Error>?
    private(set) var isCancelled = false

    func start(_ continuation: CheckedContinuation<Void, any Error>) {
        self.continuation = continuation
        if isCancelled { cancel() }
    }

    func cancel() {
        isCancelled = true
        finish(CancellationError())
    }

    func finish(_ error: (any Error)? = nil) {
        let waiting = continuation
        continuation = nil
        if let error { waiting?.resume(throwing: error) } else { waiting?.resume() }
    }
}

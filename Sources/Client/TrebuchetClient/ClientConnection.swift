internal import Transports
internal import Relays

/// A receiver of the events of a client's connection.
protocol ClientConnectionDelegate: AnyObject, Sendable {
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

/// Keeps a client connected: it performs the effects of its state machine. Only on the client's event loop, except for constants and the
/// user's requests.
final class ClientConnection: Sendable {
    /// Opens the link of an attempt, which reports `opened` and later `lost`.
    typealias Opener = @Sendable (_ attempt: Int) async throws -> Void

    let states = StateRelay<TrebuchetClient.ConnectionState>(.disconnected(nil))

    private let loop: any EventLoop
    private let hasTokenProvider: Bool
    private let delegate: LoopVariable<WeakDelegate>
    private let state: LoopVariable<State>

    /// The receiver of the events, which owns the connection.
    private struct WeakDelegate {
        weak var object: (any ClientConnectionDelegate)?
    }

    /// The machine with the links and tasks that its effects concern, on the event loop.
    private struct State {
        var machine: ConnectionMachine
        var opener: Opener?
        var links: [Int: any ClientLink] = [:]
        /// The links that are closed when their calls have responses.
        var leaving: Set<Int> = []
        var attempt: Task<Void, Never>?
        var retry: LoopTimer?
        var waiting: [LoopWaiter] = []
        /// True if only callers of `connect` have requested the current attempt.
        var hasOnlyWaiters = false
        /// The callers that wait until links are closed.
        var closers: [(links: Set<Int>, waiter: LoopWaiter)] = []
    }

    init(loop: any EventLoop, policy: ReconnectPolicy, addresses: Int, hasTokenProvider: Bool) {
        self.loop = loop
        self.hasTokenProvider = hasTokenProvider
        delegate = LoopVariable(WeakDelegate(), on: loop)
        state = LoopVariable(
            State(machine: ConnectionMachine(policy: policy, addresses: addresses)), on: loop)
    }

    /// Sets the receiver of its events, which is not retained. Callable from any thread.
    func setDelegate(_ delegate: any ClientConnectionDelegate) {
        loop.run { [weak delegate] in self.delegate.value.object = delegate }
    }

    /// True if there will be a connection without another request.
    var isExpected: Bool {
        switch state.value.machine.state {
        case .connecting, .connected, .draining: true
        case .disconnected, .closed: false
        }
    }

    /// True if the current server has sent `goAway` and another connection will follow.
    var isBeingReplaced: Bool { state.value.machine.isBeingReplaced }

    /// True if there will never be a connection again.
    var isClosed: Bool { state.value.machine.state == .closed }

    // MARK: User requests

    /// Returns when there is a connection. Throws if the client gives up, and `CancellationError` when the task is cancelled. An
    /// attempt that was started only for callers of this method ends with the last of them.
    func connect(_ opener: @escaping Opener) async throws {
        try await wait { waiter in
            guard !waiter.isCancelled else { return }
            if !self.isExpected { self.state.value.hasOnlyWaiters = true }
            self.state.value.opener = opener
            self.state.value.waiting.append(waiter)
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
        state.value.closers.removeAll { $0.waiter === waiter }
        guard state.value.waiting.contains(where: { $0 === waiter }) else { return }
        state.value.waiting.removeAll { $0 === waiter }
        guard state.value.waiting.isEmpty, state.value.hasOnlyWaiters, delegate.value.object?.needsConnection != true
        else {
            return
        }
        handle(.disconnectRequested)
    }

    /// Requests a connection unless one is expected, without waiting for it.
    func connectIfNeeded(_ opener: @escaping Opener) {
        loop.run {
            self.state.value.hasOnlyWaiters = false
            guard !self.isExpected else { return }
            self.state.value.opener = opener
            self.handle(.connectRequested)
        }
    }

    /// Disconnects. Returns when the last link is closed or the task is cancelled; new links may follow later.
    func disconnect() async { await releaseLink(.disconnectRequested) }

    /// Closes the client. Returns when the last link is closed or the task is cancelled.
    func close() async { await releaseLink(.closeRequested) }

    private func releaseLink(_ input: ConnectionMachine.Input) async {
        try? await wait { waiter in
            self.state.value.closers.append((Set(self.state.value.links.keys), waiter))
            if case .closeRequested = input { self.delegate.value.object?.connectionWillClose() }
            self.handle(input)
            self.state.value.leaving = []
            // Includes the links that were kept for their calls.
            for link in self.state.value.links.values { link.close() }
            self.resumeClosers()
        }
    }

    func link(number: Int) -> (any ClientLink)? { state.value.links[number] }

    // MARK: Link events

    func opened(_ link: any ClientLink, number: Int) {
        state.value.links[number] = link
        handle(.connected(number))
    }

    func lost(number: Int, _ error: TransportError) {
        guard state.value.links.removeValue(forKey: number) != nil else { return }
        state.value.leaving.remove(number)
        delegate.value.object?.connectionLost(number: number, error)
        handle(.connectionLost(number, error))
        resumeClosers()
    }

    /// Drops a link after a fatal error.
    func abandon(number: Int, _ error: TransportError) {
        let link = state.value.links[number]
        lost(number: number, error)
        link?.close()
    }

    func goAway(number: Int, reconnectAfter delay: Duration) { handle(.goAway(number, reconnectAfter: delay)) }

    /// Handles the response of a call: a link that was kept only for its calls may be closed.
    func callEnded(number: Int) {
        guard state.value.leaving.contains(number), delegate.value.object?.callsUnderWay(number: number) ?? 0 == 0
        else {
            return
        }
        state.value.leaving.remove(number)
        state.value.links[number]?.close()
    }

    // MARK: Effects

    private func handle(_ input: ConnectionMachine.Input) {
        for effect in state.value.machine.handle(input, at: loop.now, random: .random(in: 0..<1)) { perform(effect) }
    }

    private func perform(_ effect: ConnectionMachine.Effect) {
        switch effect {
        case .startConnecting(let number): start(number)
        case .abandon: state.value.attempt?.cancel()
        case .scheduleRetry(let number, let delay):
            state.value.retry = loop.schedule(after: delay) { [weak self] in self?.handle(.retryTimerFired(number)) }
        case .cancelRetry: state.value.retry?.cancel()
        case .activateLink(let number):
            if let link = state.value.links[number] { delegate.value.object?.connection(uses: link, number: number) }
        case .drop(let number): drop(number)
        case .notify(let state): states.update(state)
        case .releaseWaiting:
            let released = state.value.waiting
            state.value.waiting = []
            state.value.hasOnlyWaiters = false
            for waiter in released { waiter.finish() }
        case .failWaiting(let error):
            let failed = state.value.waiting
            state.value.waiting = []
            state.value.hasOnlyWaiters = false
            for waiter in failed { waiter.finish(error) }
            delegate.value.object?.connectionAbandoned(error)
        }
    }

    private func start(_ number: Int) {
        guard let opener = state.value.opener else { return }
        loop.holdTime()
        state.value.attempt = Task(executorPreference: loop.taskExecutor) { [loop, hasTokenProvider] in
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
        if state.value.machine.state != .closed, delegate.value.object?.callsUnderWay(number: number) ?? 0 > 0 {
            state.value.leaving.insert(number)
        } else {
            state.value.links[number]?.close()
        }
    }

    private func resumeClosers() {
        let open = state.value.links
        let ready = state.value.closers.filter { $0.links.isDisjoint(with: open.keys) }
        state.value.closers.removeAll { $0.links.isDisjoint(with: open.keys) }
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

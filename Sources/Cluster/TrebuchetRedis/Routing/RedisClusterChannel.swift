internal import Networking
internal import Platform
internal import Synchronization
internal import Transports

/// A subscription to a channel of a cluster, at the node that owns it.
final class RedisClusterChannel: RedisCancellable {
    typealias Join =
        @Sendable (@escaping RedisSubscriber) async throws(RedisError) -> (RedisSubscription, RedisURL.Endpoint)

    /// The current subscription and its node, under the lock.
    private struct State {
        var subscription: RedisSubscription?
        var endpoint: RedisURL.Endpoint?
        /// The number of the valid subscription. Events of earlier ones are dropped.
        var number = 0
        var failures = 0
        var isOver = false
    }

    let slot: Int
    private let subscriber: RedisSubscriber
    private let join: Join
    private let reactor = ReactorGroup.client
    private let backoff: Backoff
    private let state = Mutex(State())

    init(
        _ channel: [UInt8], _ subscriber: @escaping RedisSubscriber, _ settings: RedisSettings, _ join: @escaping Join
    ) {
        slot = HashSlot.of(channel)
        self.subscriber = subscriber
        self.join = join
        backoff = Backoff(first: settings.firstReconnectDelay, limit: settings.maximumReconnectDelay)
    }

    deinit { cancel() }

    func start() async throws(RedisError) { try await listen(state.withLock { $0.number }) }

    func cancel() {
        let subscription = state.withLock { state in
            state.isOver = true
            state.number += 1
            return state.subscription.take()
        }
        subscription?.cancel()
    }

    /// Moves to the node that owns the channel according to a new map.
    func follow(_ owner: RedisURL.Endpoint?) {
        let number: Int? = state.withLock { state in
            guard let owner, let endpoint = state.endpoint, endpoint != owner, !state.isOver else { return nil }
            return state.number
        }
        if let number { move(from: number) }
    }

    private func listen(_ number: Int) async throws(RedisError) {
        let (subscription, endpoint) = try await join { [weak self] in self?.receive($0, number) }
        let isWanted = state.withLock { state in
            guard state.number == number, !state.isOver else { return false }
            (state.subscription, state.endpoint, state.failures) = (subscription, endpoint, 0)
            return true
        }
        if !isWanted { subscription.cancel() }
    }

    private func receive(_ event: RedisChannelEvent, _ number: Int) {
        guard state.withLock({ $0.number == number && !$0.isOver }) else { return }
        switch event {
        case .message, .mayHaveMissed: subscriber(event)
        case .ended: move(from: number)
        }
    }

    private func close(_ error: RedisError) {
        let wasOver = state.withLock { state in
            defer { state.isOver = true }
            return state.isOver
        }
        if !wasOver { subscriber(.ended(error)) }
    }

    /// Leaves the node and subscribes at the next, with retries.
    private func move(from number: Int) {
        let (next, subscription): (Int?, RedisSubscription?) = state.withLock { state in
            guard state.number == number, !state.isOver else { return (nil, nil) }
            state.number += 1
            state.endpoint = nil
            return (state.number, state.subscription.take())
        }
        subscription?.cancel()
        if let next { attempt(next) }
    }

    private func attempt(_ number: Int) {
        Task(executorPreference: reactor.taskExecutor) { [weak self] in
            do throws(RedisError) {
                try await self?.listen(number)
                // Messages published in between were lost.
                self?.receive(.mayHaveMissed, number)
            } catch {
                self?.retry(number, after: error)
            }
        }
    }

    private func retry(_ number: Int, after error: RedisError) {
        if error == .closed { return close(.closed) }
        let failures = state.withLock { state in
            state.failures += 1
            return state.failures
        }
        let delay = backoff.delay(afterFailures: failures)
        reactor.run { [weak self] in
            guard let self else { return }
            self.reactor.schedule(after: delay, for: self) { channel in
                if channel.state.withLock({ $0.number == number && !$0.isOver }) { channel.attempt(number) }
            }
        }
    }
}

internal import Networking
internal import Platform
internal import Transports

/// Receives the events of a channel, on the client's reactor.
package typealias RedisSubscriber = @Sendable (RedisChannelEvent) -> Void

/// An event for subscribers of a channel.
package enum RedisChannelEvent: Equatable, Sendable {
    case message([UInt8])
    /// The connection was reestablished: messages published meanwhile were lost.
    case mayHaveMissed
    /// No more events follow.
    case ended(RedisError)
}

/// A channel and its subscribers. Only on the client's reactor.
final class RedisChannelSubscribers {
    let name: [UInt8]
    var subscribers: [Int: RedisSubscriber] = [:]
    /// The completions of unconfirmed subscriptions.
    var joining: [Int: @Sendable (RedisError?) -> Void] = [:]
    /// True if the server has confirmed the channel on the current connection; below, on any connection.
    var isConfirmed = false
    var wasConfirmed = false

    init(_ name: [UInt8]) { self.name = name }

    var join: RedisCommand { RedisCommand("SSUBSCRIBE", [.bytes(name)]) }
}

/// A subscription that lasts until it is cancelled or released.
package final class RedisSubscription: Sendable {
    private let client: RedisClient
    private let channel: [UInt8]
    private let number: Int

    fileprivate init(_ client: RedisClient, _ channel: [UInt8], _ number: Int) {
        self.client = client
        self.channel = channel
        self.number = number
    }

    deinit { cancel() }

    package func cancel() {
        let (client, channel, number) = (client, channel, number)
        client.reactor.run { client.unsubscribe(channel, number) }
    }
}

/// Sharded channels (SSUBSCRIBE), which work with a single server and in a cluster alike.
extension RedisClient {
    /// Subscribes to a channel. When this returns, the server has confirmed it. After a lost connection it is resumed
    /// automatically.
    package func subscribe(
        _ channel: [UInt8], _ subscriber: @escaping RedisSubscriber
    ) async throws(RedisError) -> RedisSubscription {
        let outcome: Result<Int, RedisError> = await withCheckedContinuation { continuation in
            reactor.run {
                self.join(channel, subscriber) { number, error in
                    continuation.resume(returning: error.map { .failure($0) } ?? .success(number))
                }
            }
        }
        return RedisSubscription(self, channel, try outcome.get())
    }

    private func join(
        _ channel: [UInt8], _ subscriber: @escaping RedisSubscriber,
        _ done: @escaping @Sendable (Int, RedisError?) -> Void
    ) {
        let topic = topics[channel] ?? RedisChannelSubscribers(channel)
        subscribers += 1
        let number = subscribers
        switch state {
        case .closed: return done(number, .closed)
        case .pausing(_, let reason): return done(number, .unavailable(reason))
        case .idle, .connecting, .handshake, .open: break
        }
        if let excess = excess(topic) { return done(number, excess) }
        topic.subscribers[number] = subscriber
        subscriberCount += 1
        if topic.isConfirmed { return done(number, nil) }
        topic.joining[number] = { done(number, $0) }
        joiningCount += 1
        guard topics.updateValue(topic, forKey: channel) == nil else { return }
        if case .open(let connection) = state { sendSubscribe(topic, over: connection) } else { start() }
    }

    /// Returns the reason to refuse another subscription.
    private func excess(_ topic: RedisChannelSubscribers) -> RedisError? {
        if subscriberCount >= settings.subscriptions {
            return .overloaded(
                "\(subscriberCount) subscriptions at Redis reach the limit RedisSettings.subscriptions")
        }
        if topic.isConfirmed { return nil }
        guard case .open(let connection) = state else { return excess(topic.join, joiningCount, 0) }
        return excess(topic.join, max(joiningCount, connection.pendingCount), connection.pendingBytes)
    }

    /// Unsubscribes. It is never refused, so at most `subscriptions` further commands wait.
    fileprivate func unsubscribe(_ channel: [UInt8], _ number: Int) {
        guard let topic = topics[channel], topic.subscribers.removeValue(forKey: number) != nil else { return }
        subscriberCount -= 1
        guard topic.subscribers.isEmpty else { return }
        topics[channel] = nil
        guard case .open(let connection) = state else { return }
        let now = reactor.now
        connection.send(
            RedisCommand("SUNSUBSCRIBE", [.bytes(channel)], then: RedisCommand("PING")), now: now, deadline: .max,
            expecting: .left(channel)
        ) { _ in }
        scheduleDeadlineCheck(at: now &+ settings.commandTimeout.nanoseconds)
    }

    func sendSubscribe(_ topic: RedisChannelSubscribers, over connection: RedisConnection) {
        let (now, bound) = (reactor.now, LoopBound(topic, on: reactor))
        connection.send(topic.join, now: now, deadline: .max, expecting: .joined(topic.name)) { [weak self] outcome in
            self?.didSubscribe(bound.value, outcome)
        }
        scheduleDeadlineCheck(at: now &+ settings.commandTimeout.nanoseconds)
    }

    private func didSubscribe(_ topic: RedisChannelSubscribers, _ outcome: Result<RESPValue, RedisError>) {
        // The channel may have been left meanwhile, and joined by other subscribers.
        guard topics[topic.name] === topic else { return }
        switch outcome {
        case .success:
            topic.isConfirmed = true
            if topic.wasConfirmed {
                for (number, subscriber) in topic.subscribers where topic.joining[number] == nil {
                    subscriber(.mayHaveMissed)
                }
            }
            topic.wasConfirmed = true
            finishJoining(topic, nil)
        case .failure(.reply(let reply)): endSubscription(topic, .reply(reply))
        // The connection is lost. Unconfirmed subscriptions fail; the others continue with the next one.
        case .failure(let error): failJoining(topic, error)
        }
    }

    private func finishJoining(_ topic: RedisChannelSubscribers, _ error: RedisError?) {
        let joining = topic.joining
        topic.joining = [:]
        joiningCount -= joining.count
        for done in joining.values { done(error) }
    }

    private func failJoining(_ topic: RedisChannelSubscribers, _ error: RedisError) {
        for number in topic.joining.keys { topic.subscribers[number] = nil }
        subscriberCount -= topic.joining.count
        if topic.subscribers.isEmpty { topics[topic.name] = nil }
        finishJoining(topic, error)
    }

    private func endSubscription(_ topic: RedisChannelSubscribers, _ error: RedisError) {
        topics[topic.name] = nil
        let old = topic.subscribers.filter { topic.joining[$0.key] == nil }
        subscriberCount -= topic.subscribers.count
        topic.subscribers = [:]
        finishJoining(topic, error)
        for subscriber in old.values { subscriber(.ended(error)) }
    }

    /// Fails unconfirmed subscriptions, because there is no connection, and will be none soon.
    func failTopics(_ error: RedisError) {
        for topic in topics.values { failJoining(topic, error) }
    }

    /// Ends all subscriptions, because there will be no more connections.
    func endTopics(_ error: RedisError) {
        for topic in topics.values { endSubscription(topic, error) }
    }

    func didPush(_ elements: [RESPValue]) {
        guard elements.count >= 2, let channel = elements[1].bytes, let topic = topics[channel] else { return }
        if elements[0].isText("smessage"), elements.count == 3, let message = elements[2].bytes {
            for subscriber in topic.subscribers.values { subscriber(.message(message)) }
        } else if elements[0].isText("sunsubscribe") {
            // The channel's part of the cluster has moved to another node.
            endSubscription(topic, .unavailable("the channel has moved to another node"))
        }
    }
}

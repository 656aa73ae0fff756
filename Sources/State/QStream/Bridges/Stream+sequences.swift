extension Stream {
    /// Returns an asynchronous sequence of the values sent from now on.
    ///
    ///     self             1───23──────4──
    ///     asyncStream()    ────2──3────4──   (the reader takes a while for each)
    ///
    /// Senders do not wait for the reader: unread values are kept. The subscription ends when the reader leaves its
    /// loop, is cancelled, or the sequence is released.
    nonisolated public func asyncStream() async -> AsyncStream<Value> {
        await sequence(receiveCurrentValue: false, .unbounded)
    }

    /// Returns an asynchronous sequence of the current value, if any, and the values sent from now on.
    ///
    ///     self                1───23──────4──
    ///     tapAsyncStream()    1───2──3────4──   (the reader takes a while for each)
    ///
    /// Senders do not wait for the reader. The subscription ends when the reader leaves its loop, is cancelled, or the
    /// sequence is released.
    ///
    /// - Parameter bufferingPolicy: which unread values are kept.
    nonisolated public func tapAsyncStream(
        bufferingPolicy: BufferingPolicy = .unbounded
    ) async -> AsyncStream<Value> {
        await sequence(receiveCurrentValue: true, bufferingPolicy)
    }

    /// Returns a sequence of the values sent from now on, whose sender waits until the reader has taken each value.
    ///
    ///     self           1───2──3────4──   (3 could not be sent before 2 was taken)
    ///     asyncPipe()    ────2──3────4──
    ///
    /// When the reader leaves its loop, the sender no longer waits.
    nonisolated public func asyncPipe() async -> AsyncPipe<Value> {
        let pipe = AsyncPipe<Value>()
        // Weak: the pipe keeps the subscription, not the other way round.
        let weak = Weak(pipe)
        pipe.source.exchange(await subscribe { await weak.object?.push($0) })
        return pipe
    }

    private nonisolated func sequence(
        receiveCurrentValue: Bool, _ policy: BufferingPolicy
    ) async -> AsyncStream<Value> {
        let limit: AsyncStream<Value>.Continuation.BufferingPolicy =
            switch policy {
            case .unbounded: .unbounded
            case .bufferingOldest(let limit): .bufferingOldest(limit)
            case .bufferingNewest(let limit): .bufferingNewest(limit)
            }
        let (sequence, continuation) = AsyncStream.makeStream(of: Value.self, bufferingPolicy: limit)
        let subscription = await subscribe(receiveCurrentValue: receiveCurrentValue) { continuation.yield($0) }
        continuation.onTermination = { _ in subscription.cancel() }
        return sequence
    }
}

internal import Relays
internal import Synchronization

/// Hands values from one task to another, one at a time: the producer waits until its value has been taken.
///
///     let pipe = AsyncPipe<Data>()
///     await pipe.push(data)                   // the producer
///     for await data in pipe { … }            // the consumer
///
/// Without a consumer, a push waits. When the loop is left, waiting producers continue and their values are dropped,
/// until another loop begins: a consumer that leaves blocks no producer.
public final class AsyncPipe<Value: Sendable>: AsyncSequence, Sendable {
    public typealias Element = Value
    public typealias Failure = Never

    fileprivate let shared = Shared()
    /// The subscription that feeds the pipe, if a stream does. Set once, right after creation.
    let source = OperatorState<AnySubscription?>(nil)

    /// Creates a pipe without consumers, at which producers wait.
    public init() {}

    deinit { shared.close() }

    /// Pushes a value. Returns when it has been taken, when it cannot be taken any more, or when the task is
    /// cancelled: true if it was taken.
    @discardableResult
    public func push(_ value: Value) async -> Bool { await shared.push(value) }

    /// Returns the next value; nil when the task is cancelled before it comes.
    public func pull() async -> Value? { await shared.pull() }

    /// Returns the next value. Throws when the task is cancelled before it comes.
    public func pullValue() async throws(CancellationError) -> Value {
        guard let value = await pull() else { throw CancellationError() }
        return value
    }

    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// A consumer. After its release, producers do not wait any more.
    public final class Iterator: AsyncIteratorProtocol {
        private let pipe: AsyncPipe

        fileprivate init(_ pipe: AsyncPipe) {
            self.pipe = pipe
            pipe.shared.addConsumer()
        }

        deinit { pipe.shared.removeConsumer() }

        /// Returns the next value; nil when the task is cancelled.
        public func next(isolation actor: isolated (any Actor)?) async -> Value? { await pipe.pull() }
    }
}

@available(*, unavailable)
extension AsyncPipe.Iterator: Sendable {}

extension AsyncPipe {
    /// The shared state of producers and consumers. It does not keep the pipe alive.
    fileprivate final class Shared: Sendable {
        /// A producer that waits until its value is taken.
        private struct PendingPush {
            let number: Int
            let value: Value
            let continuation: UnsafeContinuation<Bool, Never>
        }

        /// A consumer that waits for a value.
        private struct PendingPull {
            let number: Int
            let continuation: UnsafeContinuation<Value?, Never>
        }

        /// The waiting producers and consumers, under the lock.
        private struct State {
            var pushes = Fifo<PendingPush>()
            var pulls = Fifo<PendingPull>()
            var consumers = 0
            /// True if no consumer will take a value: closed, or all consumers have left.
            var hasLostConsumers = false
            var isClosed = false
            var lastNumber = 0
        }

        private let state = Mutex(State())

        func push(_ value: Value) async -> Bool {
            let number = nextNumber()
            return await withTaskCancellationHandler {
                await withUnsafeContinuation { continuation in
                    let (pull, isDelivered) = state.withLock { state -> (PendingPull?, Bool?) in
                        if let pull = state.pulls.popFirst() { return (pull, true) }
                        if state.hasLostConsumers || Task.isCancelled { return (nil, false) }
                        state.pushes.append(PendingPush(number: number, value: value, continuation: continuation))
                        return (nil, nil)
                    }
                    pull?.continuation.resume(returning: value)
                    if let isDelivered { continuation.resume(returning: isDelivered) }
                }
            } onCancel: {
                let push = state.withLock { $0.pushes.removeFirst { $0.number == number } }
                push?.continuation.resume(returning: false)
            }
        }

        func pull() async -> Value? {
            let number = nextNumber()
            return await withTaskCancellationHandler {
                await withUnsafeContinuation { (continuation: UnsafeContinuation<Value?, Never>) in
                    let (push, isOver) = state.withLock { state -> (PendingPush?, Bool) in
                        if let push = state.pushes.popFirst() { return (push, false) }
                        if state.isClosed || Task.isCancelled { return (nil, true) }
                        state.pulls.append(PendingPull(number: number, continuation: continuation))
                        return (nil, false)
                    }
                    if let push { continuation.resume(returning: push.value) }
                    push?.continuation.resume(returning: true)
                    if isOver { continuation.resume(returning: nil) }
                }
            } onCancel: {
                let pull = state.withLock { $0.pulls.removeFirst { $0.number == number } }
                pull?.continuation.resume(returning: nil)
            }
        }

        func addConsumer() {
            state.withLock { state in
                state.consumers += 1
                state.hasLostConsumers = state.isClosed
            }
        }

        func removeConsumer() {
            rejectPushes(
                state.withLock { state in
                    state.consumers -= 1
                    guard state.consumers == 0 else { return Fifo<PendingPush>() }
                    state.hasLostConsumers = true
                    return Self.takePushes(&state)
                })
        }

        func close() {
            let (pushes, pulls) = state.withLock { state in
                state.hasLostConsumers = true
                state.isClosed = true
                let pulls = state.pulls
                state.pulls = Fifo()
                return (Self.takePushes(&state), pulls)
            }
            rejectPushes(pushes)
            var remaining = pulls
            while let pull = remaining.popFirst() { pull.continuation.resume(returning: nil) }
        }

        private static func takePushes(_ state: inout State) -> Fifo<PendingPush> {
            let pushes = state.pushes
            state.pushes = Fifo()
            return pushes
        }

        private func rejectPushes(_ pushes: Fifo<PendingPush>) {
            var pushes = pushes
            while let push = pushes.popFirst() { push.continuation.resume(returning: false) }
        }

        private func nextNumber() -> Int {
            state.withLock { state in
                state.lastNumber += 1
                return state.lastNumber
            }
        }
    }
}

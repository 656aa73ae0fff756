internal import Relays
internal import Synchronization

/// Values handed from one task to another, one at a time: whoever pushes waits until the value has been taken.
///
///     let pipe = AsyncPipe<Data>()
///     await pipe.push(data)                   // the producer
///     for await data in pipe { … }            // the consumer
///
/// While nobody has begun to iterate, a push waits. When the loop is left, those who push go on and their values are
/// dropped, until another loop begins: a consumer that leaves holds nobody up.
public final class AsyncPipe<Value: Sendable>: AsyncSequence, Sendable {
    public typealias Element = Value
    public typealias Failure = Never

    fileprivate let shared = Shared()
    /// What feeds the pipe, if a stream does; set once, right after it was made.
    let source = Kept<AnySubscription?>(nil)

    /// A pipe that nobody reads yet: whoever pushes waits.
    public init() {}

    deinit { shared.close() }

    /// Returns when the value has been taken, when it can be no more, or when the task is cancelled: whether it was taken.
    @discardableResult
    public func push(_ value: Value) async -> Bool { await shared.push(value) }

    /// The next value; nil when the task is cancelled before it comes.
    public func pull() async -> Value? { await shared.pull() }

    /// The next value. Throws when the task is cancelled before it comes.
    public func pullValue() async throws(CancellationError) -> Value {
        guard let value = await pull() else { throw CancellationError() }
        return value
    }

    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// A consumer; when it is released, those who push are not held up any more.
    public final class Iterator: AsyncIteratorProtocol {
        private let pipe: AsyncPipe

        fileprivate init(_ pipe: AsyncPipe) {
            self.pipe = pipe
            pipe.shared.addConsumer()
        }

        deinit { pipe.shared.removeConsumer() }

        /// The next value; nil when the task is cancelled.
        public func next(isolation actor: isolated (any Actor)?) async -> Value? { await pipe.pull() }
    }
}

@available(*, unavailable)
extension AsyncPipe.Iterator: Sendable {}

extension AsyncPipe {
    /// What producers and consumers wait on; it does not keep the pipe alive.
    fileprivate final class Shared: Sendable {
        private struct Offer {
            let number: Int
            let value: Value
            let taken: UnsafeContinuation<Bool, Never>
        }

        private struct Wish {
            let number: Int
            let given: UnsafeContinuation<Value?, Never>
        }

        private struct State {
            var offers = Fifo<Offer>()
            var wishes = Fifo<Wish>()
            var consumers = 0
            /// Whether nobody will take anything: closed, or all consumers have left.
            var isDeserted = false
            var isClosed = false
            var lastNumber = 0
        }

        private let state = Mutex(State())

        func push(_ value: Value) async -> Bool {
            let number = nextNumber()
            return await withTaskCancellationHandler {
                await withUnsafeContinuation { continuation in
                    let (wish, answer) = state.withLock { state -> (Wish?, Bool?) in
                        if let wish = state.wishes.popFirst() { return (wish, true) }
                        if state.isDeserted || Task.isCancelled { return (nil, false) }
                        state.offers.append(Offer(number: number, value: value, taken: continuation))
                        return (nil, nil)
                    }
                    wish?.given.resume(returning: value)
                    if let answer { continuation.resume(returning: answer) }
                }
            } onCancel: {
                let offer = state.withLock { $0.offers.removeFirst { $0.number == number } }
                offer?.taken.resume(returning: false)
            }
        }

        func pull() async -> Value? {
            let number = nextNumber()
            return await withTaskCancellationHandler {
                await withUnsafeContinuation { (continuation: UnsafeContinuation<Value?, Never>) in
                    let (offer, isOver) = state.withLock { state -> (Offer?, Bool) in
                        if let offer = state.offers.popFirst() { return (offer, false) }
                        if state.isClosed || Task.isCancelled { return (nil, true) }
                        state.wishes.append(Wish(number: number, given: continuation))
                        return (nil, false)
                    }
                    if let offer { continuation.resume(returning: offer.value) }
                    offer?.taken.resume(returning: true)
                    if isOver { continuation.resume(returning: nil) }
                }
            } onCancel: {
                let wish = state.withLock { $0.wishes.removeFirst { $0.number == number } }
                wish?.given.resume(returning: nil)
            }
        }

        func addConsumer() {
            state.withLock { state in
                state.consumers += 1
                state.isDeserted = state.isClosed
            }
        }

        func removeConsumer() {
            dismiss(
                state.withLock { state in
                    state.consumers -= 1
                    guard state.consumers == 0 else { return Fifo<Offer>() }
                    state.isDeserted = true
                    return Self.takeOffers(&state)
                })
        }

        func close() {
            let (offers, wishes) = state.withLock { state in
                state.isDeserted = true
                state.isClosed = true
                let wishes = state.wishes
                state.wishes = Fifo()
                return (Self.takeOffers(&state), wishes)
            }
            dismiss(offers)
            var left = wishes
            while let wish = left.popFirst() { wish.given.resume(returning: nil) }
        }

        private static func takeOffers(_ state: inout State) -> Fifo<Offer> {
            let offers = state.offers
            state.offers = Fifo()
            return offers
        }

        private func dismiss(_ offers: Fifo<Offer>) {
            var offers = offers
            while let offer = offers.popFirst() { offer.taken.resume(returning: false) }
        }

        private func nextNumber() -> Int {
            state.withLock { state in
                state.lastNumber += 1
                return state.lastNumber
            }
        }
    }
}

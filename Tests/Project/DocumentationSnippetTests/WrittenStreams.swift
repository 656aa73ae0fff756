import QStream
import Testing

// The blocks of the guide to QStream, verbatim, where `QStreamExamples` has further lines between them.

/// Accepts the unused results of an example's lines.
@resultBuilder
private enum Written {
    static func buildExpression<Value>(_ value: Value) {}
    static func buildBlock(_ lines: Void...) {}
}

private struct User: Sendable {}
private struct AVAudioPCMBuffer: Sendable {}

private actor Item {
    var id = 1
    var innerStream = Subject(value: 1)
}

private let stream = Subject(value: 1)
private let initialValue = 0
private let defaultValue = 0

private func transform(_ value: Int) async -> Int { value }
private func optionalTransform(_ value: Int) async -> Int? { value }
private func arrayTransform(_ value: Int) async -> [Int] { [value] }
private func reduce(_ accumulated: Int, _ next: Int) async -> Int { accumulated + next }
private func shouldInclude(_ value: Int) async -> Bool { true }
private func updateUI(_ user: User?) {}
private func work() async {}

@Written private func core() async {
    let count: Subject<Int> = .init(value: 0)

    await count.set(42)
    await count.value  // 42

    // Mutate in-place and re-emit
    await count.mutate { $0 += 1 }
}

@Written private func relay() async {
    let buttonTapped: Relay<Void> = .init()

    await buttonTapped.send(())
}

@Written private func transforming() async {
    await stream.map { value in await transform(value) }
    await stream.compactMap { value in await optionalTransform(value) }
    await stream.flatMap { value in await arrayTransform(value) }
    await stream.scan(initialValue) { accumulated, next in await reduce(accumulated, next) }
}

@Written private func filtering(_ stream: Subject<Item>) async {
    await stream.removeDuplicates(by: { await $0.id == $1.id })
}

@Written private func filtering() async {
    await stream.filter { value in await shouldInclude(value) }
    await stream.removeDuplicates()
    await stream.first()
}

@Written private func combining(
    _ streamA: Subject<Int>, _ streamB: Subject<Int>, _ streamC: Subject<Int>, _ outerStream: Subject<Item>
) async {
    // Combine latest values from multiple streams (2-7 overloads + collection)
    await streamA.combineLatest(streamB)
        .map { a, b in "\(a): \(b)" }

    // Merge multiple streams of the same type
    await Streams.Merge(streamA, streamB, streamC)

    // Switch to the latest inner stream
    await outerStream
        .map { item in await item.innerStream.any() }
        .switchToLatest()
}

@Written private func timing(_ boolStream: Subject<Bool>) async {
    await stream.debounce(for: .seconds(0.3))
    await stream.throttle(for: .seconds(1))
    await boolStream.hold(for: .seconds(2))
    let timer = await Streams.Timer(interval: .seconds(1))
    timer
}

@Written private func utility(_ someSubject: Subject<Int>) async {
    await stream.print("label")  // Debug logging
    await stream.dispatch()  // Move processing off the current actor
    await stream.bind(to: someSubject)  // Pipe values into a Subject or Relay
    let value = await stream.get()  // Await the next value
    value
}

@Written private func utilityWithin(_ someSubject: Subject<Int>) async throws {
    let value = try await stream.get(timeout: .seconds(5))
    value
    await stream.with(initialValue: defaultValue)  // Prepend an initial value
}

private func pitfall(_ optionalUserStream: Subject<User?>) async {
    var subscriptions: [AnySubscription] = []
    // Risky — the compactMap stream has no guaranteed current value,
    // so a tap might miss the initial state entirely:
    await optionalUserStream
        .compactMap { $0 }
        .tap { user in updateUI(user) }
        .store(in: &subscriptions)

    // Safer — forward optionals and handle nil explicitly:
    await optionalUserStream
        .tap { user in updateUI(user) }  // receives Optional<User>, always has a current value
        .store(in: &subscriptions)
    subscriptions = []
}

private func upstream() async {
    var subscriptions: [AnySubscription] = []
    let a: Subject<Int> = .init(value: 0)
    let b: Subject<Int> = .init(value: 0)

    // This will deadlock — a's send waits for this subscriber,
    // which waits for b's send, which (if b feeds back into a) waits for a:
    await a.tap { value in
        await b.set(value + 1)  // blocks until b's subscribers finish
    }.store(in: &subscriptions)
    subscriptions = []
}

private actor Messenger {
    struct Message: Sendable {}

    func encryptAndSend(_ message: Message) async throws {}

    let sendMessageLock: AsyncBinarySemaphore = .init()

    func sendMessage(_ message: Message) async throws {
        try await sendMessageLock.withLock {
            try await encryptAndSend(message)  // only one send at a time
        }
    }
}

private actor Encoder {
    var inputQueue: [AVAudioPCMBuffer] = []
    func encode(_ buffer: AVAudioPCMBuffer) {}

    let dataAvailable: AsyncBinarySemaphore = .init(value: false)  // starts unavailable

    // Producer
    func push(buffer: AVAudioPCMBuffer) async {
        inputQueue.append(buffer)
        await dataAvailable.signal()
    }

    // Consumer
    func encodeLoop() async {
        while !Task.isCancelled {
            await dataAvailable.wait()  // suspends until signal
            let buffer = inputQueue.removeFirst()
            encode(buffer)
        }
    }
}

private func cancelable(_ semaphore: AsyncBinarySemaphore) async throws {
    // Throws CancellationError if the task is cancelled while waiting
    try await semaphore.withLockCancelable { await work() }
    try await semaphore.waitCancelable()
}

private func reentrant() async {
    let lock: AsyncBinarySemaphore = .init(allowTaskReentrancy: true)

    await lock.withLock {
        // ...
        await lock.withLock {
            // same task, no deadlock
        }
    }
}

@Suite(.timeLimit(.minutes(5))) struct WrittenStreams {
    @Test("the guide's blocks compile and end verbatim")
    func blocks() async throws {
        await core()
        await relay()
        await transforming()
        await filtering()
        await filtering(Subject(value: Item()))
        await combining(Subject(value: 1), Subject(value: 2), Subject(value: 3), Subject(value: Item()))
        await timing(Subject(value: true))
        await utility(Subject(value: 0))
        try await utilityWithin(Subject(value: 0))
        await pitfall(Subject(value: User()))
        await upstream()
        try await Messenger().sendMessage(Messenger.Message())
        let encoder = Encoder()
        await encoder.push(buffer: AVAudioPCMBuffer())
        await encoder.dataAvailable.wait()
        try await cancelable(AsyncBinarySemaphore())
        await reentrant()
    }
}

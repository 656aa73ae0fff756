import QStream
import Synchronization
import Testing

/// The examples of QStream's guide, verbatim; code that the guide omits is at the end.
@Suite(.timeLimit(.minutes(5))) struct QStreamExamples {
    @Test("the quick look compiles and runs")
    func quickLook() async {
        let printed = Lines()
        @Sendable func print(_ line: String) { printed.add(line) }

        let isConnected: Subject<Bool> = .init(value: false)
        let userName: Subject<String> = .init(value: "")

        var subscriptions: [AnySubscription] = []

        // Derive a status label from two streams — with async closures
        await isConnected.combineLatest(userName)
            .map { connected, name in connected ? "Online: \(name)" : "Offline" }
            .removeDuplicates()
            .tap { label in print(label) }
            .store(in: &subscriptions)

        await isConnected.set(true)  // "Online: "
        await userName.set("Alice")  // "Online: Alice"

        #expect(printed.all == ["Offline", "Online: ", "Online: Alice"])
    }

    @Test("subject, relay and erased stream behave as documented")
    func coreTypes() async {
        let count: Subject<Int> = .init(value: 0)

        await count.set(42)
        #expect(await count.value == 42)

        // Mutate in-place and re-emit
        await count.mutate { $0 += 1 }
        #expect(await count.value == 43)

        let buttonTapped: Relay<Void> = .init()
        let taps = Lines()
        let tapping = await buttonTapped.subscribe { taps.add("tapped") }

        await buttonTapped.send(())
        #expect(taps.all == ["tapped"])
        withExtendedLifetime(tapping) {}

        let isConnected: Subject<Bool> = .init(value: true)
        func userStatus() async -> AnyStream<String> {
            await isConnected
                .map { $0 ? "Online" : "Offline" }
                .any()
        }
        #expect(await userStatus().currentValue() == "Online")
    }

    @Test("tap and subscribe differ as documented")
    func subscribing() async {
        let printed = Lines()
        @Sendable func print(_ value: Int) { printed.add("\(value)") }
        let count: Subject<Int> = .init(value: 1)
        var subscriptions: [AnySubscription] = []

        await count
            .tap { value in
                print(value)  // prints current value, then every update
            }
            .store(in: &subscriptions)

        await count
            .subscribe { value in
                print(value)  // prints only new values after subscribing
            }
            .store(in: &subscriptions)

        await count.set(2)
        #expect(printed.all == ["1", "2", "2"])
        subscriptions = []
        await count.set(3)
        #expect(printed.all.count == 3)
    }

    @Test("transforming and filtering behave as documented")
    func transforming() async {
        let stream = Subject(value: 2)
        @Sendable func transform(_ value: Int) async -> Int { value * 10 }
        @Sendable func optionalTransform(_ value: Int) async -> String? { "\(value)" }
        @Sendable func arrayTransform(_ value: Int) async -> [Int] { [value, value] }
        @Sendable func reduce(_ accumulated: Int, _ next: Int) async -> Int { accumulated + next }
        @Sendable func shouldInclude(_ value: Int) async -> Bool { value > 1 }
        let initialValue = 5

        #expect(await stream.map { value in await transform(value) }.currentValue() == 20)
        #expect(await stream.compactMap { value in await optionalTransform(value) }.currentValue() == "2")
        #expect(await stream.flatMap { value in await arrayTransform(value) }.currentValue() == nil)
        let scanned = await stream.scan(initialValue) { accumulated, next in await reduce(accumulated, next) }
        #expect(await scanned.currentValue() == 7)

        #expect(await stream.filter { value in await shouldInclude(value) }.currentValue() == 2)
        #expect(await stream.removeDuplicates().currentValue() == 2)
        let items = Subject(value: Item(id: 1))
        #expect(await items.removeDuplicates(by: { await $0.id == $1.id }).currentValue()?.id == 1)
        #expect(await stream.first().currentValue() == 2)
    }

    @Test("combining streams behaves as documented")
    func combining() async {
        let (streamA, streamB, streamC) = (Subject(value: 1), Subject(value: 2), Subject(value: 3))

        // Combine latest values from multiple streams (2-7 overloads + collection)
        let combined = await streamA.combineLatest(streamB)
            .map { a, b in "\(a): \(b)" }
        #expect(await combined.currentValue() == "1: 2")

        // Merge multiple streams of the same type
        let merged = await Streams.Merge(streamA, streamB, streamC)
        #expect(await merged.currentValue() == 3)

        // Switch to the latest inner stream
        let outerStream = Subject(value: OuterItem())
        let switched =
            await outerStream
            .map { item in await item.innerStream.any() }
            .switchToLatest()
        #expect(await switched.currentValue() == "inner")
    }

    @Test("timing streams behaves as documented")
    func timing() async {
        let stream = Subject(value: 1)
        let boolStream = Subject(value: true)
        #expect(await stream.debounce(for: .seconds(0.3)).currentValue() == 1)
        #expect(await stream.throttle(for: .seconds(1)).currentValue() == 1)
        #expect(await boolStream.hold(for: .seconds(2)).currentValue() == true)
        let timer = await Streams.Timer(interval: .seconds(1))
        #expect(await timer.currentValue() == nil)
    }

    @Test("the other operators behave as documented")
    func utility() async throws {
        let stream = Subject(value: 1)
        let someSubject = Subject(value: 0)
        let defaultValue = 7
        #expect(await stream.any().currentValue() == 1)  // Type-erase
        #expect(await stream.print("label").currentValue() == 1)  // Debug logging
        #expect(await stream.dispatch().currentValue() == 1)  // Move processing off the current actor
        let binding = await stream.bind(to: someSubject)  // Pipe values into a Subject or Relay
        #expect(await someSubject.value == 1)
        let value = await stream.get()  // Await the next value
        #expect(value == 1)
        let timed = try await stream.get(timeout: .seconds(5))
        #expect(timed == 1)
        #expect(await Relay<Int>().with(initialValue: defaultValue).currentValue() == 7)
        withExtendedLifetime(binding) {}
    }

    @Test("optionals are forwarded as the pitfall recommends")
    func pitfall() async {
        let optionalUserStream = Subject<String?>()
        let seen = Lines()
        @Sendable func updateUI(_ user: String?) { seen.add(user ?? "nobody") }
        var subscriptions: [AnySubscription] = []

        await optionalUserStream
            .compactMap { $0 }
            .tap { user in updateUI(user) }
            .store(in: &subscriptions)

        // Safer — forward optionals and handle nil explicitly:
        await optionalUserStream
            .tap { user in updateUI(user) }  // receives Optional<User>, always has a current value
            .store(in: &subscriptions)

        #expect(seen.all == ["nobody"])
    }

    @Test("a subscriber may set another subject")
    func upstreamSend() async {
        let a: Subject<Int> = .init(value: 0)
        let b: Subject<Int> = .init(value: 0)
        var subscriptions: [AnySubscription] = []

        // Without a circle this is no deadlock; with one it is, and a debug build says so.
        await a.tap { value in
            await b.set(value + 1)  // blocks until b's subscribers finish
        }.store(in: &subscriptions)

        await a.set(4)
        #expect(await b.value == 5)
    }

    @Test("streams switch dynamically")
    func switching() async {
        let printed = Lines()
        @Sendable func print(_ line: String) { printed.add(line) }
        var subscriptions: [AnySubscription] = []
        let activeSource: Subject<AudioSource?> = .init(value: nil)

        await activeSource
            .map { source in await source?.volume.any() ?? Subject(value: 0.0).any() }
            .switchToLatest()
            .removeDuplicates()
            .tap { volume in print("Volume: \(volume)") }
            .store(in: &subscriptions)

        let source = AudioSource()
        await activeSource.set(source)
        await source.volume.set(0.75)
        #expect(printed.all == ["Volume: 0.0", "Volume: 0.5", "Volume: 0.75"])
    }

    @Test("async utilities behave as documented")
    func utilities() async throws {
        let items = [1, 2, 3]
        let handled = Lines()
        func process(_ item: Int) async -> Int { item * 2 }
        func shouldKeep(_ item: Int) async -> Bool { item > 1 }
        @Sendable func handle(_ item: Int) async { handled.add("\(item)") }
        @Sendable func longOperation() async -> String { "done" }
        func criticalSection() async -> Int { 7 }
        let (taskA, taskB) = (Task { 1 }, Task { "b" })

        // Async sequence operations
        let results = await items.mapAsync { await process($0) }
        let filtered = await items.filterAsync { await shouldKeep($0) }
        await items.forEachConcurrent { await handle($0) }
        #expect(results == [2, 4, 6])
        #expect(filtered == [2, 3])
        #expect(handled.all.sorted() == ["1", "2", "3"])

        // Task helpers
        let value = try await Task.withTimeout(.seconds(10)) { await longOperation() }
        let (a, b) = try await Task.all(of: taskA, taskB)
        #expect((value, a, b) == ("done", 1, "b"))

        // Synchronization
        let semaphore = AsyncBinarySemaphore()
        let result = await semaphore.withLock { await criticalSection() }
        #expect(result == 7)
    }

    @Test("the semaphore works as a lock, as a signal, cancelled, and reentrant")
    func semaphore() async throws {
        let messenger = Messenger()
        try await messenger.sendMessage("hello")
        #expect(await messenger.sent == ["hello"])

        let encoder = Encoder()
        let loop = Task { await encoder.encodeLoop() }
        await encoder.push(buffer: "a")
        while await encoder.encoded.isEmpty { await Task.yield() }
        #expect(await encoder.encoded == ["a"])
        loop.cancel()
        await encoder.dataAvailable.signal()
        await loop.value

        // Throws CancellationError if the task is cancelled while waiting
        let semaphore = AsyncBinarySemaphore(value: false)
        let locking = Task { try await semaphore.withLockCancelable {} }
        let waiting = Task { try await semaphore.waitCancelable() }
        locking.cancel()
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await locking.value }
        await #expect(throws: CancellationError.self) { try await waiting.value }

        let lock: AsyncBinarySemaphore = .init(allowTaskReentrancy: true)
        var isReached = false
        await lock.withLock {
            // ...
            await lock.withLock {
                // same task, no deadlock
                isReached = true
            }
        }
        #expect(isReached)
    }
}

private actor Messenger {
    let sendMessageLock: AsyncBinarySemaphore = .init()
    var sent: [String] = []

    func sendMessage(_ message: String) async throws {
        try await sendMessageLock.withLock {
            try await encryptAndSend(message)  // only one send at a time
        }
    }

    func encryptAndSend(_ message: String) async throws { sent.append(message) }
}

private actor Encoder {
    let dataAvailable: AsyncBinarySemaphore = .init(value: false)  // starts unavailable
    var inputQueue: [String] = []
    var encoded: [String] = []

    // Producer
    func push(buffer: String) async {
        inputQueue.append(buffer)
        await dataAvailable.signal()
    }

    // Consumer
    func encodeLoop() async {
        while !Task.isCancelled {
            await dataAvailable.wait()  // suspends until signal
            guard !inputQueue.isEmpty else { continue }
            let buffer = inputQueue.removeFirst()
            encode(buffer)
        }
    }

    func encode(_ buffer: String) { encoded.append(buffer) }
}

private actor Item {
    var id: Int
    init(id: Int) { self.id = id }
}

private actor OuterItem {
    var innerStream = Subject(value: "inner")
}

private actor AudioSource {
    var volume = Subject(value: 0.5)
}

/// The printed lines.
private final class Lines: Sendable {
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }
    func add(_ line: String) { lines.withLock { $0.append(line) } }
}

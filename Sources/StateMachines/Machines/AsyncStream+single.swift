internal import Relays
import Synchronization

extension AsyncStream where Element: Sendable {
    /// A stream of one element, which asynchronous work produces; it ends after it.
    ///
    /// The work begins at once, and is cancelled when the stream is.
    public static func single(
        priority: TaskPriority? = nil, _ work: @escaping @Sendable () async -> Element
    ) -> Self {
        Self { continuation in
            let task = Task(priority: priority) {
                continuation.yield(await work())
                continuation.finish()
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    /// A stream that asynchronous work makes, such as a method of an actor that returns one.
    ///
    /// The work begins at once, and its stream is read as this one is: what that keeps for a slow reader is up to its policy. Two
    /// elements are taken ahead.
    public static func deferred(_ make: @escaping @Sendable () async -> Self) -> Self {
        produced { output in
            for await element in await make() { await output.put(element) }
        }
    }

    /// A stream that asynchronous work fills, as fast as it is read. It ends with the work; the work is cancelled with it.
    static func produced(_ fill: @escaping @Sendable (Handover<Element>) async -> Void) -> Self {
        let handover = Handover<Element>()
        let producer = Producer(
            Task {
                await fill(handover)
                await handover.finish()
            })
        return Self {
            // Held here: it goes with the stream.
            defer { withExtendedLifetime(producer) {} }
            return await handover.take()
        } onCancel: {
            producer.cancel()
        }
    }
}

/// What fills a stream; cancelled when nobody holds the stream any more.
private final class Producer: Sendable {
    private let task: Task<Void, Never>

    init(_ task: Task<Void, Never>) { self.task = task }

    deinit { task.cancel() }

    func cancel() { task.cancel() }
}

/// One element on its way from those who make some to those who read them.
final class Handover<Element: Sendable>: Sendable {
    private struct Contents: Sendable {
        var element: Element?
        var isFinished = false
    }

    private let contents = Mutex(Contents())
    private let room = AsyncBinarySemaphore()
    private let news = AsyncBinarySemaphore(value: false)

    /// Returns when there was room for the element. When the task is cancelled, it is dropped.
    func put(_ element: Element) async {
        guard (try? await room.waitCancelable()) != nil else { return }
        contents.withLock { $0.element = element }
        news.signalNow()
    }

    /// Nothing is put after this.
    func finish() async {
        // A reader comes first to what is there still; when the task is cancelled, there is none.
        let isRead = (try? await room.waitCancelable()) != nil
        contents.withLock { contents in
            contents.isFinished = true
            if !isRead { contents.element = nil }
        }
        news.signalNow()
    }

    /// The next element; nil when there are no more, or the task is cancelled.
    func take() async -> Element? {
        guard (try? await news.waitCancelable()) != nil else { return nil }
        let (element, isFinished) = contents.withLock { contents in
            defer { contents.element = nil }
            return (contents.element, contents.isFinished)
        }
        // Others may wait for the end, too.
        if isFinished { news.signalNow() }
        if element != nil { room.signalNow() }
        return element
    }
}

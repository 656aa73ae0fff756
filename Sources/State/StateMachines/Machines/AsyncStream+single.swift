internal import Relays
import Synchronization

extension AsyncStream where Element: Sendable {
    /// Returns a stream of one element, which asynchronous work produces. It ends after the element.
    ///
    /// The work starts at once, and is cancelled with the stream.
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

    /// Returns a stream that asynchronous work creates, for example a method of an actor that returns one.
    ///
    /// The work starts at once, and its stream is read at the pace of this one: its own policy determines the
    /// buffering for a slow reader. Two elements are read ahead.
    public static func deferred(_ make: @escaping @Sendable () async -> Self) -> Self {
        produced { output in
            for await element in await make() { await output.put(element) }
        }
    }

    /// Returns a stream that asynchronous work fills at the pace of its reader. It ends with the work; the work is
    /// cancelled with it.
    static func produced(_ fill: @escaping @Sendable (ElementHandoff<Element>) async -> Void) -> Self {
        let handover = ElementHandoff<Element>()
        let producer = ElementProducer(
            Task {
                await fill(handover)
                await handover.finish()
            })
        return Self {
            // Retained here, for the lifetime of the stream.
            defer { withExtendedLifetime(producer) {} }
            return await handover.next()
        } onCancel: {
            producer.cancel()
        }
    }
}

/// The task that fills a stream; cancelled at the release of the stream.
private final class ElementProducer: Sendable {
    private let task: Task<Void, Never>

    init(_ task: Task<Void, Never>) { self.task = task }

    deinit { task.cancel() }

    func cancel() { task.cancel() }
}

/// Transfers elements one at a time from producers to readers.
final class ElementHandoff<Element: Sendable>: Sendable {
    /// The element in transit, under the lock.
    private struct Contents: Sendable {
        var element: Element?
        var isFinished = false
    }

    private let contents = Mutex(Contents())
    private let slotFree = AsyncBinarySemaphore()
    private let elementAvailable = AsyncBinarySemaphore(value: false)

    /// Stores the element when there is room. When the task is cancelled, the element is dropped.
    func put(_ element: Element) async {
        guard (try? await slotFree.waitCancelable()) != nil else { return }
        contents.withLock { $0.element = element }
        elementAvailable.signalNow()
    }

    /// Ends the elements.
    func finish() async {
        // A reader first takes the remaining element. If this task is cancelled, that is dropped.
        let isRead = (try? await slotFree.waitCancelable()) != nil
        contents.withLock { contents in
            contents.isFinished = true
            if !isRead { contents.element = nil }
        }
        elementAvailable.signalNow()
    }

    /// Returns the next element; nil when there are no more, or the task is cancelled.
    func next() async -> Element? {
        guard (try? await elementAvailable.waitCancelable()) != nil else { return nil }
        let (element, isFinished) = contents.withLock { contents in
            defer { contents.element = nil }
            return (contents.element, contents.isFinished)
        }
        // Other readers may wait for the end, too.
        if isFinished { elementAvailable.signalNow() }
        if element != nil { slotFree.signalNow() }
        return element
    }
}

internal import Relays

/// The link between two streams of a chain: keeps the stream above alive, and ends the delivery when it is released.
@usableFromInline
final class Attachment: Sendable {
    // `nonisolated(unsafe)`: written only in `deinit`.
    private nonisolated(unsafe) var stream: (any AnyObject & Sendable)?
    private let end: @Sendable () -> Void

    /// Creates an attachment without adding the inlet to the outlet; the outlet adds it afterwards.
    init<S: Stream>(_ inlet: Inlet<S.Value>, to stream: S) {
        let outlet = stream.outlet
        end = {
            inlet.close()
            outlet.detach(inlet)
            inlet.destination?.removeUpstream(outlet)
        }
        self.stream = stream
    }

    /// Creates an attachment for another resource that ends with the chain.
    init(_ end: @escaping @Sendable () -> Void) { self.end = end }

    deinit {
        end()
        if stream != nil { ReleaseQueue.release(&stream) }
    }
}

/// The queue of a chain's streams that are to be released, from below: each is released after the one below it.
///
/// A release in the `deinit` of the stream below would recurse, and chains may be long.
private final class ReleaseQueue: Sendable {
    /// The queue of the running code. A task started there inherits it, and may find it over.
    private static let current = TaskLocal<ReleaseQueue?>(wrappedValue: nil)

    /// The streams that wait for their release.
    private struct State {
        var waiting = Fifo<any AnyObject & Sendable>()
        var isOver = false
    }

    private let state = OperatorState(State())

    /// Releases the object: now, or after the current release ends.
    static func release(_ object: inout (any AnyObject & Sendable)?) {
        if let released = current.get(), released.enqueue(&object) { return }
        let released = ReleaseQueue()
        _ = released.enqueue(&object)
        current.withValue(released) {
            while let object = released.next() { withExtendedLifetime(object) {} }
        }
    }

    private func enqueue(_ object: inout (any AnyObject & Sendable)?) -> Bool {
        let isTaken = state.withLock { [object] state in
            guard !state.isOver, let object else { return false }
            state.waiting.append(object)
            return true
        }
        if isTaken { object = nil }
        return isTaken
    }

    private func next() -> (any AnyObject & Sendable)? {
        state.withLock { state in
            let object = state.waiting.popFirst()
            if object == nil { state.isOver = true }
            return object
        }
    }
}

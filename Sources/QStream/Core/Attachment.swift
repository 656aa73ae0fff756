internal import Relays

/// What holds a chain together: it keeps the stream above alive, and ends the delivery when it is released.
@usableFromInline
final class Attachment: @unchecked Sendable {
    // Unchecked: the stream is written only as the attachment goes.
    private var stream: (any AnyObject & Sendable)?
    private let end: @Sendable () -> Void

    /// Not yet attached: that is the outlet's part, once this exists.
    init<S: Stream>(_ inlet: Inlet<S.Value>, to stream: S) {
        let outlet = stream.outlet
        end = {
            inlet.close()
            outlet.detach(inlet)
            inlet.destination?.leave(outlet)
        }
        self.stream = stream
    }

    /// Something else that has to be undone with the chain.
    init(_ end: @escaping @Sendable () -> Void) { self.end = end }

    deinit {
        end()
        if stream != nil { Released.letGo(&stream) }
    }
}

/// The streams of a chain that goes, from below: each is released when the one below it is gone.
///
/// Not one in the `deinit` of the other: chains may be long.
private final class Released: Sendable {
    /// What the code that runs is released by. A task that is begun there inherits it, and may find it over.
    private static let current = TaskLocal<Released?>(wrappedValue: nil)

    private struct State {
        var waiting = Fifo<any AnyObject & Sendable>()
        var isOver = false
    }

    private let state = Kept(State())

    /// Releases the object: now, or as soon as what is being released is gone.
    static func letGo(_ object: inout (any AnyObject & Sendable)?) {
        if let released = current.get(), released.take(&object) { return }
        let released = Released()
        _ = released.take(&object)
        current.withValue(released) {
            while let object = released.next() { withExtendedLifetime(object) {} }
        }
    }

    private func take(_ object: inout (any AnyObject & Sendable)?) -> Bool {
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

public import Relays

/// A stream of the elements of an asynchronous sequence, read by a separate task. Its current value is the last
/// element.
///
///     elements               ─1───2───3|
///     AsyncSequenceStream    ─1───2───3────   (3 stays)
///
/// The next element is requested after the streams below have processed the last one. Reading ends when the stream,
/// and the chains attached to it, are released. After the end of the sequence the last value stays current.
public actor AsyncSequenceStream<Value: Sendable>: Stream {
    /// The outlet of the elements.
    nonisolated public let outlet: Outlet<Value>
    private nonisolated let reader: Task<Void, Never>

    /// Creates a stream of the sequence's elements.
    public init<Elements: AsyncSequence & Sendable>(_ elements: Elements)
    where Elements.Element == Value, Elements.Failure == Never {
        self.init(Outlet()) { outlet in
            for await element in elements { await outlet.emitAlone(element) }
        }
    }

    /// Creates a stream of the sequence's elements.
    ///
    /// - Parameter onFailure: called when the sequence fails; the stream then keeps its last value.
    public init<Elements: AsyncSequence & Sendable>(
        _ elements: Elements, onFailure: @escaping @Sendable (Elements.Failure) async -> Void
    ) where Elements.Element == Value {
        self.init(Outlet()) { outlet in
            do throws(Elements.Failure) {
                for try await element in elements { await outlet.emitAlone(element) }
            } catch {
                await onFailure(error)
            }
        }
    }

    /// Creates a stream of the relay's values that starts with the current value. While the streams below are busy, it
    /// skips to the newest.
    ///
    /// The stream does not keep the relay alive.
    public init(_ relay: StateRelay<Value>) {
        let (value, version) = relay.current
        let changes = relay.stream(after: version)
        self.init(Outlet(value)) { outlet in
            for await value in changes { await outlet.emitAlone(value) }
        }
    }

    private init(_ outlet: Outlet<Value>, _ read: @escaping @Sendable (Outlet<Value>) async -> Void) {
        self.outlet = outlet
        reader = OperatorTask.current.start { await read(outlet) }
    }

    deinit { reader.cancel() }
}

extension AsyncSequence where Self: Sendable, Element: Sendable, Failure == Never {
    /// Returns a stream of the elements, as the head of a chain: `await game.observeScore().stream().map { … }`.
    ///
    ///     self        ─1───2───3|
    ///     stream()    ─1───2───3────
    public func stream() -> AsyncSequenceStream<Element> { AsyncSequenceStream(self) }
}

extension AsyncSequence where Self: Sendable, Element: Sendable {
    /// Returns a stream of the elements.
    ///
    ///     self                      ─1───2───x
    ///     stream { failed($0) }     ─1───2────────   (2 stays, and `onFailure` is called)
    ///
    /// - Parameter onFailure: called when the sequence fails; the stream then keeps its last value.
    public func stream(onFailure: @escaping @Sendable (Failure) async -> Void) -> AsyncSequenceStream<Element> {
        AsyncSequenceStream(self, onFailure: onFailure)
    }
}

@_exported public import class Relays.AsyncBinarySemaphore

/// The values of one source over time, which can be observed, transformed and combined.
///
/// Every operator keeps its newest value, so that ``currentValue()`` is available at each point of a chain. Streams
/// have no errors and no end. All of them are actors, and every member may be called from any isolation.
///
/// Where `Foundation.Stream` is visible too, write ``ValueStream``.
public protocol Stream<Value>: Actor {
    /// The type of the values; `Void` for impulses.
    associatedtype Value: Sendable

    /// The outlet of the values. A custom type forwards the outlet of a stream that it holds.
    nonisolated var outlet: Outlet<Value> { get }
}

/// ``Stream`` under a name that does not occur in Foundation.
public typealias ValueStream = Stream

/// A namespace for streams without a top-level type: results of operators, timers, constants.
public enum Streams {}

extension Stream {
    /// Returns the newest value, if there is one.
    nonisolated public func currentValue() async -> Value? { outlet.current }

    /// Calls `body` with the current value, if there is one, and then with each value sent from now on.
    ///
    ///     self    1─────2───3──
    ///     tap     ───1──2───3──   (called between 1 and 2)
    ///
    /// Returns after `body` has received the current value. A sender waits until `body` has returned. The subscription
    /// ends when the returned object is released.
    nonisolated public func tap(_ body: @escaping @Sendable (Value) async -> Void) async -> AnySubscription {
        await subscribe(receiveCurrentValue: true, body)
    }

    /// Calls `body` with each value sent from now on. A value whose delivery has begun is not included.
    ///
    ///     self         1─────2───3──
    ///     subscribe    ──────2───3──   (called between 1 and 2)
    ///
    /// A sender waits until `body` has returned. The subscription ends when the returned object is released.
    nonisolated public func subscribe(_ body: @escaping @Sendable (Value) async -> Void) async -> AnySubscription {
        await subscribe(receiveCurrentValue: false, body)
    }

    /// Calls `body` with each value sent from now on, after the current one if `receiveCurrentValue` is true.
    ///
    ///     self     1─────2───3──
    ///     true     ───1──2───3──   (called between 1 and 2)
    ///     false    ──────2───3──
    ///
    /// Otherwise it behaves like ``tap(_:)`` and ``subscribe(_:)``.
    nonisolated public func subscribe(
        receiveCurrentValue: Bool, _ body: @escaping @Sendable (Value) async -> Void
    ) async -> AnySubscription {
        await subscribe(receiveCurrentValue: receiveCurrentValue, Inlet(into: nil) { value, _ in await body(value) })
    }

    nonisolated func subscribe(receiveCurrentValue: Bool, _ inlet: Inlet<Value>) async -> AnySubscription {
        let attachment = Attachment(inlet, to: self)
        await outlet.attach(inlet, withCurrent: receiveCurrentValue)
        return AnySubscription(attachment)
    }
}

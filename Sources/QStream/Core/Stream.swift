@_exported public import class Relays.AsyncBinarySemaphore

/// A wire that carries the values of one thing over time: anything that can be tapped, transformed and combined.
///
/// Every operator keeps its newest value, so that ``currentValue()`` answers at each point of a chain. Streams have no
/// errors and no end. All of them are actors, and everything below may be called from any isolation.
///
/// Where `Foundation.Stream` is in sight too, write ``ValueStream``.
public protocol Stream<Value>: Actor {
    /// What comes over the wire; `Void` for impulses.
    associatedtype Value: Sendable

    /// Where the values come out. A type of your own forwards the outlet of a stream that it holds.
    nonisolated var outlet: Outlet<Value> { get }
}

/// ``Stream`` by a name that nothing in Foundation has.
public typealias ValueStream = Stream

/// The streams that have no type of their own among the first you meet: operators' results, timers, constants.
public enum Streams {}

extension Stream {
    /// The newest value, if there is one.
    nonisolated public func currentValue() async -> Value? { outlet.current }

    /// Calls `body` with the current value, if there is one, and then with each value sent from now on.
    ///
    ///     self    1─────2───3──
    ///     tap     ───1──2───3──   (called between 1 and 2)
    ///
    /// Returns when `body` has seen the current value. Whoever sends a value waits until `body` has returned from it.
    /// The subscription ends when the returned object is released.
    nonisolated public func tap(_ body: @escaping @Sendable (Value) async -> Void) async -> AnySubscription {
        await subscribe(receiveCurrentValue: true, body)
    }

    /// Calls `body` with each value sent from now on; a value whose delivery has begun is not among them.
    ///
    ///     self         1─────2───3──
    ///     subscribe    ──────2───3──   (called between 1 and 2)
    ///
    /// Whoever sends a value waits until `body` has returned from it. The subscription ends when the returned object is
    /// released.
    nonisolated public func subscribe(_ body: @escaping @Sendable (Value) async -> Void) async -> AnySubscription {
        await subscribe(receiveCurrentValue: false, body)
    }

    /// Calls `body` with each value sent from now on, and with the current one before, if `receiveCurrentValue` says so.
    ///
    ///     self     1─────2───3──
    ///     true     ───1──2───3──   (called between 1 and 2)
    ///     false    ──────2───3──
    ///
    /// The rest is as for ``tap(_:)`` and ``subscribe(_:)``.
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

/// Where a shared value comes from: how to load it, and how to hear of its changes.
///
/// Wrappers with keys of one type and with equal ids share one value. The functions are called on the thread that loads
/// or sets the value, with no lock held and the wrapper's store as ``SharedStore/current``; they should start slow work
/// elsewhere and answer through what they are given, from any thread.
public protocol SharedReaderKey<Value>: Sendable {
    /// What wrappers with this key hold.
    associatedtype Value: Sendable
    /// What tells two keys of this type apart.
    associatedtype ID: Hashable & Sendable

    /// What tells two keys of this type apart. Leave out of it what does not, such as a value to begin with.
    var id: ID { get }

    /// Loads the value and resumes the continuation.
    ///
    /// Called when the first wrapper with this key is made, and by `load()`. If the continuation is resumed before this
    /// returns, the wrapper begins with that value.
    func load(context: LoadContext<Value>, continuation: LoadContinuation<Value>)

    /// Begins to send changes from outside to the subscriber, until the subscription is cancelled.
    ///
    /// Called once for all wrappers with this key, after `load`. The subscription ends with the last of them.
    func subscribe(context: LoadContext<Value>, subscriber: SharedSubscriber<Value>) -> SharedSubscription
}

extension SharedReaderKey where Self: Hashable, ID == Self {
    /// The key itself: keys that are equal share their value.
    public var id: Self { self }
}

/// Why a value is loaded.
public enum LoadContext<Value: Sendable>: Sendable {
    /// The first wrapper was made; it begins with this value if there is none to load.
    case initialValue(Value)
    /// Somebody called `load()`.
    case userInitiated

    /// The value to begin with, when the first wrapper is made.
    public var initialValue: Value? {
        if case .initialValue(let value) = self { value } else { nil }
    }
}

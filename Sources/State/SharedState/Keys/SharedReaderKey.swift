/// The source of a shared value: loads it, and observes its external changes.
///
/// Wrappers with keys of one type and with equal ids share one value. The methods are called on the thread that loads
/// or sets the value, with no lock held and the wrapper's store as ``SharedStore/current``. They should start slow
/// work elsewhere and report through their continuation or subscriber, from any thread.
public protocol SharedReaderKey<Value>: Sendable {
    /// The type of the value.
    associatedtype Value: Sendable
    /// The type that distinguishes keys of this type.
    associatedtype ID: Hashable & Sendable

    /// Distinguishes keys of this type. Leave out other properties, such as an initial value.
    var id: ID { get }

    /// Loads the value and resumes the continuation.
    ///
    /// Called when the first wrapper with this key is created, and by `load()`. If the continuation is resumed before
    /// this returns, the wrapper begins with that value.
    func load(context: LoadContext<Value>, continuation: LoadContinuation<Value>)

    /// Sends external changes to the subscriber until the subscription is cancelled.
    ///
    /// Called once for all wrappers with this key, after `load`. The subscription ends with the last of them.
    func subscribe(context: LoadContext<Value>, subscriber: SharedSubscriber<Value>) -> SharedSubscription
}

extension SharedReaderKey where Self: Hashable, ID == Self {
    /// The key itself: keys that are equal share their value.
    public var id: Self { self }
}

/// The reason for a load.
public enum LoadContext<Value: Sendable>: Sendable {
    /// The first wrapper was created; it begins with this value if there is none to load.
    case initialValue(Value)
    /// `load()` was called.
    case userInitiated

    /// The initial value, if the first wrapper was created.
    public var initialValue: Value? {
        if case .initialValue(let value) = self { value } else { nil }
    }
}

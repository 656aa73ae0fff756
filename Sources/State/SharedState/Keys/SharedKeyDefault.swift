/// A key with its initial value, so that wrappers need not repeat it.
///
///     extension SharedReaderKey where Self == InMemoryKey<Int>.Default {
///         static var count: Self { Self[.inMemory("count"), default: 0] }
///     }
///
///     @Shared(.count) var count
///
/// It refers to the same value as the key alone.
public struct SharedKeyDefault<Base: SharedReaderKey>: SharedReaderKey, ForwardingKey {
    let base: Base
    let makeValue: @Sendable () -> Base.Value

    /// Combines a key with an initial value.
    ///
    /// - Parameters:
    ///   - key: the key of the value.
    ///   - value: the initial value of a wrapper while there is none to load; evaluated on demand.
    public static subscript(_ key: Base, default value: @autoclosure @escaping @Sendable () -> Base.Value) -> Self {
        Self(base: key, makeValue: value)
    }

    /// The initial value of a wrapper while there is no other; evaluated each time.
    public var initialValue: Base.Value { makeValue() }

    var original: any SharedReaderKey<Base.Value> { base }

    /// The id of the key alone, so that both refer to one value.
    public var id: Base.ID { base.id }

    /// Loads with the key.
    public func load(context: LoadContext<Base.Value>, continuation: LoadContinuation<Base.Value>) {
        base.load(context: context, continuation: continuation)
    }

    /// Subscribes with the key.
    public func subscribe(
        context: LoadContext<Base.Value>, subscriber: SharedSubscriber<Base.Value>
    ) -> SharedSubscription {
        base.subscribe(context: context, subscriber: subscriber)
    }
}

extension SharedKeyDefault: SharedKey where Base: SharedKey {
    /// Saves with the key.
    public func save(_ value: Base.Value, context: SaveContext, continuation: SaveContinuation) {
        base.save(value, context: context, continuation: continuation)
    }
}

/// A key that refers to the value of another key of any type, under which the value is found.
protocol ForwardingKey<Value>: SharedReaderKey {
    var original: any SharedReaderKey<Value> { get }
}

extension SharedReaderKey {
    /// This key with an initial value.
    public typealias Default = SharedKeyDefault<Self>
}

/// A key together with the value to begin with, so that wrappers need not repeat it.
///
///     extension SharedReaderKey where Self == InMemoryKey<Int>.Default {
///         static var count: Self { Self[.inMemory("count"), default: 0] }
///     }
///
///     @Shared(.count) var count
///
/// It stands for the same value as the key alone.
public struct SharedKeyDefault<Base: SharedReaderKey>: SharedReaderKey, StandInKey {
    let base: Base
    let makeValue: @Sendable () -> Base.Value

    /// - Parameters:
    ///   - key: where the value comes from.
    ///   - value: what a wrapper begins with as long as there is none; made when it is needed.
    public static subscript(_ key: Base, default value: @autoclosure @escaping @Sendable () -> Base.Value) -> Self {
        Self(base: key, makeValue: value)
    }

    /// What a wrapper begins with as long as there is no other value; made anew each time.
    public var initialValue: Base.Value { makeValue() }

    var original: any SharedReaderKey<Base.Value> { base }

    /// That of the key alone, so that both stand for one value.
    public var id: Base.ID { base.id }

    /// Loads by the key.
    public func load(context: LoadContext<Base.Value>, continuation: LoadContinuation<Base.Value>) {
        base.load(context: context, continuation: continuation)
    }

    /// Subscribes by the key.
    public func subscribe(
        context: LoadContext<Base.Value>, subscriber: SharedSubscriber<Base.Value>
    ) -> SharedSubscription {
        base.subscribe(context: context, subscriber: subscriber)
    }
}

extension SharedKeyDefault: SharedKey where Base: SharedKey {
    /// Saves by the key.
    public func save(_ value: Base.Value, context: SaveContext, continuation: SaveContinuation) {
        base.save(value, context: context, continuation: continuation)
    }
}

/// A key that stands for the value of another, of any type: that is the one under which the value is found.
protocol StandInKey<Value>: SharedReaderKey {
    var original: any SharedReaderKey<Value> { get }
}

extension SharedReaderKey {
    /// This key with a value to begin with.
    public typealias Default = SharedKeyDefault<Self>
}

internal import Synchronization

/// A value guarded by a dedicated actor.
public actor ValueActor<Value: Sendable> {
    /// A copy of the value.
    public var value: Value

    /// Creates the actor.
    ///
    /// - Parameter value: the initial value.
    public init(_ value: Value) { self.value = value }

    /// Creates the actor.
    ///
    /// - Parameter value: the initial value.
    public init(value: Value) { self.value = value }

    /// Replaces the value.
    public func set(_ value: Value) { self.value = value }

    /// Replaces the value.
    public func set(value: Value) { self.value = value }

    /// Runs a closure with the value, on the actor, without concurrent changes.
    @discardableResult
    public func execute<Result: Sendable, Failure: Error>(
        _ work: @Sendable (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try work(&value)
    }

    /// Changes the value in place, without concurrent accesses.
    @discardableResult
    public func mutate<Result: Sendable, Failure: Error>(
        _ change: @Sendable (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try change(&value)
    }
}

/// A value behind a lock, for synchronous code.
public final class Synced<Value: Sendable>: Sendable {
    private let guarded: Mutex<Value>

    /// Creates the box.
    ///
    /// - Parameter value: the initial value.
    public init(_ value: Value) { guarded = Mutex(value) }

    /// A copy of the value; assignment replaces it.
    public var value: Value {
        get { guarded.withLock { $0 } }
        set {
            // The old value is released outside the lock: its `deinit` may use this object.
            var old = newValue
            guarded.withLock { value in swap(&value, &old) }
        }
    }

    /// Changes the value in place, under the lock.
    ///
    /// The change must be short and must not use this object; nor may the `deinit` of values that it replaces or
    /// removes. Setting ``value`` releases the old one outside the lock.
    @discardableResult
    public func mutate<Result: Sendable, Failure: Error>(
        _ change: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try guarded.withLock { value throws(Failure) in try change(&value) }
    }
}

/// A weak reference.
public struct Weak<Object: AnyObject & Sendable>: Sendable {
    /// The object; nil once it has been freed.
    public weak let object: Object?

    /// Creates a reference that does not retain the object.
    public init(_ object: Object?) { self.object = object }
}

/// `Void` as a nominal type, which can have conformances.
public struct SendableVoid: Sendable, Hashable, Codable {
    /// Creates the only value.
    public init() {}
}

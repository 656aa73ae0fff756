internal import Synchronization

/// A value that lives in an actor of its own.
public actor ValueActor<Value: Sendable> {
    /// The value as it is; a copy.
    public var value: Value

    /// - Parameter value: what it begins with.
    public init(_ value: Value) { self.value = value }

    /// - Parameter value: what it begins with.
    public init(value: Value) { self.value = value }

    /// Replaces the value.
    public func set(_ value: Value) { self.value = value }

    /// Replaces the value.
    public func set(value: Value) { self.value = value }

    /// Runs a closure with the value, on the actor; nobody else changes it meanwhile.
    @discardableResult
    public func execute<Result: Sendable, Failure: Error>(
        _ work: @Sendable (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try work(&value)
    }

    /// Changes the value in place; nobody else touches it meanwhile.
    @discardableResult
    public func mutate<Result: Sendable, Failure: Error>(
        _ change: @Sendable (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try change(&value)
    }
}

/// A value behind a lock, for code that cannot wait.
public final class Synced<Value: Sendable>: Sendable {
    private let guarded: Mutex<Value>

    /// - Parameter value: what it begins with.
    public init(_ value: Value) { guarded = Mutex(value) }

    /// A copy of the value, or a new one.
    public var value: Value {
        get { guarded.withLock { $0 } }
        set {
            // The old value is released outside the lock: its `deinit` may be code that uses this one.
            var old = newValue
            guarded.withLock { value in swap(&value, &old) }
        }
    }

    /// Changes the value in place, under the lock: the change must be short and must not use this object, nor may the `deinit` of what
    /// it replaces or removes; setting ``value`` releases the old one outside of the lock.
    @discardableResult
    public func mutate<Result: Sendable, Failure: Error>(
        _ change: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try guarded.withLock { value throws(Failure) in try change(&value) }
    }
}

/// A reference that does not keep what it refers to.
public struct Weak<Object: AnyObject & Sendable>: Sendable {
    /// The object; nil once nobody else keeps it.
    public weak let object: Object?

    /// Does not keep the object.
    public init(_ object: Object?) { self.object = object }
}

/// Nothing, as a type that can have conformances.
public struct SendableVoid: Sendable, Hashable, Codable {
    /// The only one there is.
    public init() {}
}

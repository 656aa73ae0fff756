/// A current value that any number of readers follow at their own pace.
///
/// The relay stores one value, its version and the waiting readers. Nothing is queued per reader, and a reader cannot
/// delay a writer. Usable from any isolation. When the relay is freed, its streams end as after `finish()`.
public final class StateRelay<Value: Sendable>: Sendable {
    // Streams hold this monitor instead of the relay, so that a waiting reader does not keep the relay alive.
    @usableFromInline let monitor: Monitor<VersionedValue<Value>>

    /// An object that lives as long as the relay, for example the source of its values.
    @usableFromInline let retainedObject: (any AnyObject & Sendable)?

    /// Creates a relay.
    ///
    /// - Parameter value: the current value until the first change; its version is 1.
    @inlinable
    public init(_ value: Value) {
        monitor = Monitor(VersionedValue(value))
        retainedObject = nil
    }

    /// Creates a relay that keeps `retainedObject` alive.
    package init(_ value: Value, keeping retainedObject: any AnyObject & Sendable) {
        monitor = Monitor(VersionedValue(value))
        self.retainedObject = retainedObject
    }

    deinit { finish() }

    /// The newest value.
    @inlinable
    public var currentValue: Value { monitor.withLock { $0.value } }

    /// The version of the newest value: 1 for the initial value, plus one for each change, even to an equal value.
    @inlinable
    public var version: UInt64 { monitor.withLock { $0.version } }

    /// The newest value with its version.
    @inlinable
    public var current: (value: Value, version: UInt64) { monitor.withLock { ($0.value, $0.version) } }

    /// The current value, then each newer value that the reader does not skip.
    ///
    /// A reader may skip values but never gets one twice, or an older one after a newer one. The last value always
    /// arrives. Each iterator begins with the value that is current at its first `next()`.
    @inlinable
    public var stream: Stream { Stream(monitor: monitor) }

    /// The values newer than a version. A slow reader may skip some.
    @inlinable
    public func stream(after version: UInt64) -> Stream { Stream(monitor: monitor, after: version) }

    /// Replaces the value and wakes the readers. After `finish()` it does nothing.
    @inlinable
    public func update(_ value: Value) {
        // The old value leaves the lock before its release: its `deinit` may use this relay.
        let (replaced, woken) = monitor.change { $0.replace(with: value) }
        woken.resume()
        _ = replaced
    }

    /// Changes the value in place, wakes the readers and returns the result of `change`.
    ///
    /// `change` runs under the relay's lock: it must be short and must not use this relay, which traps. The `deinit` of
    /// values that `change` replaces or removes runs under the lock too, with the same restrictions. ``update(_:)-(Value)``
    /// with a value releases the old one outside the lock. Deferring the release here would copy an array for each
    /// appended element.
    ///
    /// When `change` throws, its changes up to then are published nevertheless. After `finish()` it works on a copy
    /// that is dropped.
    @discardableResult
    @inlinable
    public func update<Result: Sendable, Failure: Error>(
        _ change: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let (result, woken) = monitor.change { state in
            Swift.Result { () throws(Failure) in try state.mutate(change) }
        }
        woken.resume()
        return try result.get()
    }

    /// Makes the current value the last one. Each stream ends once its reader has received it.
    public func finish() {
        let (_, woken) = monitor.change { $0.isFinished = true }
        woken.resume()
    }

    /// A Boolean value that indicates whether `finish()` was called: no further value comes.
    public var isFinished: Bool { monitor.withLock { $0.isFinished } }

    /// The number of readers that have the current value and wait for the next.
    package var waitingReaderCount: Int { monitor.sleeperCount }
}

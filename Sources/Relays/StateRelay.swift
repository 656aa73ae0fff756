/// A current value that any number of readers follow at their own pace.
///
/// The relay holds one value, its version and the readers that wait: nothing is queued per reader, and no reader can
/// hold up a writer. Usable from any isolation. When the relay is freed its streams end as after `finish()`.
public final class StateRelay<Value: Sendable>: Sendable {
    // Streams hold this monitor and not the relay, so that a waiting reader does not keep its writer alive.
    @usableFromInline let monitor: Monitor<VersionedValue<Value>>

    /// What has to live as long as the relay, such as what feeds it.
    @usableFromInline let companion: (any AnyObject & Sendable)?

    /// - Parameter value: current until the first change; its version is 1.
    @inlinable
    public init(_ value: Value) {
        monitor = Monitor(VersionedValue(value))
        companion = nil
    }

    /// A relay that keeps something alive.
    package init(_ value: Value, keeping companion: any AnyObject & Sendable) {
        monitor = Monitor(VersionedValue(value))
        self.companion = companion
    }

    deinit { finish() }

    /// The newest value.
    @inlinable
    public var currentValue: Value { monitor.withLock { $0.value } }

    /// The number of the newest value: 1 for the one that the relay began with, one more with each change, also when the value is
    /// the same.
    @inlinable
    public var version: UInt64 { monitor.withLock { $0.version } }

    /// The newest value with its version.
    @inlinable
    public var current: (value: Value, version: UInt64) { monitor.withLock { ($0.value, $0.version) } }

    /// The current value, then each newer one that the reader is in time for.
    ///
    /// A reader may skip values but never gets one twice or an older one after a newer one, and the last one always
    /// arrives. Each iterator begins with the value that is current when it is first asked.
    @inlinable
    public var stream: Stream { Stream(monitor: monitor) }

    /// The values that are newer than a version, as far as the reader is in time for them.
    @inlinable
    public func stream(after version: UInt64) -> Stream { Stream(monitor: monitor, after: version) }

    /// Replaces the value and wakes the readers. After `finish()` it does nothing.
    @inlinable
    public func update(_ value: Value) {
        // The old value is returned out of the lock: its `deinit` may be code that uses this relay.
        let (replaced, woken) = monitor.change { $0.replace(with: value) }
        woken.resume()
        _ = replaced
    }

    /// Changes the value in place, wakes the readers and returns what `change` returns.
    ///
    /// `change` runs under the relay's lock: it must be short and must not use this relay (that traps). Nor may the `deinit` of what it
    /// replaces or removes, which is released there; ``update(_:)-(Value)`` with a value releases the old one outside of the lock. To hold
    /// it back here, too, would copy an array with each element that is appended. When `change` throws, whatever it had changed by then
    /// is published all the same. After `finish()` it works on a copy that is dropped.
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

    /// Makes the current value the last one: each stream ends once its reader has seen it.
    public func finish() {
        let (_, woken) = monitor.change { $0.isFinished = true }
        woken.resume()
    }

    /// Whether `finish()` was called: no further value comes.
    public var isFinished: Bool { monitor.withLock { $0.isFinished } }

    /// Readers that have seen the current value and wait for the next.
    package var waitingReaderCount: Int { monitor.sleeperCount }
}

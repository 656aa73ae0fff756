internal import Relays

/// The readers of a state in this process, with its type erased. In the actor's isolation.
protocol LocalStateReaders: AnyObject, Sendable {
    func didChange(version: UInt64)
    /// Finishes the readers after the actor was released. Called on any thread.
    func finish()
}

/// The source for readers in this process. Readers receive version numbers and fetch the newest value. In streams without
/// conflation they receive each value.
final class LocalStates<Value: Codable & Sendable>: LocalStateReaders {
    /// A value with its version number.
    struct Version: Sendable {
        let value: Value
        let version: UInt64
    }

    let versions: StateRelay<UInt64>
    /// Nil if only the newest value counts.
    let each: (relay: EventRelay<Version>, buffer: Int)?
    // `nonisolated(unsafe)`: called only in the actor's isolation.
    private nonisolated(unsafe) let read: () -> Value?

    /// Creates the source.
    ///
    /// - Parameter buffer: the number of versions that a reader may leave unread in a stream without conflation.
    init(version: UInt64, buffer: Int?, read: @escaping () -> Value?) {
        versions = StateRelay(version)
        each = buffer.map { (EventRelay(), $0) }
        self.read = read
    }

    /// The value with its version; nil after the actor was released. In the actor's isolation.
    var newest: Version? { read().map { Version(value: $0, version: versions.currentValue) } }

    func didChange(version: UInt64) {
        versions.update(version)
        if let each, let newest { each.relay.send(newest) }
    }

    func finish() {
        versions.finish()
        each?.relay.finish()
    }
}

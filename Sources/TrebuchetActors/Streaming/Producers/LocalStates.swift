internal import Relays

/// Those who read a state in this process, whatever its type. In the actor's isolation.
protocol LocalReaders: AnyObject, Sendable {
    func didChange(version: UInt64)
    /// The actor is gone. From anywhere.
    func finish()
}

/// What readers in this process follow of a state: they are told of versions and fetch the newest value, but are handed
/// each where none may be left out.
///
/// `@unchecked Sendable`: `read` is called in the actor's isolation alone.
final class LocalStates<Value: Codable & Sendable>: LocalReaders, @unchecked Sendable {
    struct Version: Sendable {
        let value: Value
        let version: UInt64
    }

    let versions: StateRelay<UInt64>
    /// Nil when the newest value alone counts.
    let each: (relay: EventRelay<Version>, buffer: Int)?
    private let read: () -> Value?

    /// - Parameter buffer: versions that a reader may leave unread, where it gets each.
    init(version: UInt64, buffer: Int?, read: @escaping () -> Value?) {
        versions = StateRelay(version)
        each = buffer.map { (EventRelay(), $0) }
        self.read = read
    }

    /// The value with its version; nil when the actor is gone. In the actor's isolation.
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

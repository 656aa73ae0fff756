internal import Bytes
internal import TrebuchetWire

/// One version of a state, encoded once for all subscribers.
package final class StateUpdate: Sendable {
    let sequence: UInt64
    /// The part after the streamID of a `streamData` message with the whole value. Nil if `patch` was created without it and no
    /// subscriber has needed it yet.
    let current: SharedBytes?
    /// The delta from an earlier version; nil if there is none or it is not smaller.
    let patch: Patch?
    /// The size of `current`, or if it is nil, the size when it was last encoded.
    let snapshotByteCount: Int
    /// The creation time on the monotonic clock; 0 if it is unknown here.
    let createdAt: UInt64

    /// A delta for subscribers with the version `base`.
    struct Patch: Sendable {
        let base: UInt64
        let sequence: UInt64
        let suffix: SharedBytes
    }

    init(sequence: UInt64, current: SharedBytes?, patch: Patch?, snapshotByteCount: Int, createdAt: UInt64 = 0) {
        self.createdAt = createdAt
        self.sequence = sequence
        self.current = current
        self.patch = patch
        self.snapshotByteCount = snapshotByteCount
    }

    /// This update without `current`, which may be large.
    var withoutSnapshot: StateUpdate {
        guard current != nil else { return self }
        return StateUpdate(
            sequence: sequence, current: nil, patch: patch, snapshotByteCount: snapshotByteCount, createdAt: createdAt)
    }

    /// This update without any content.
    var withoutText: StateUpdate {
        StateUpdate(
            sequence: sequence, current: nil, patch: nil, snapshotByteCount: snapshotByteCount, createdAt: createdAt)
    }

    /// Indicates whether the update is a delta whose value is too large to be stored with each delta.
    var isLargePatch: Bool { patch != nil && current?.count ?? 0 > 8 << 10 }

    /// The cost of the update in a turn's budget: the size of the sent part.
    var byteCount: Int { patch?.suffix.count ?? current?.count ?? 0 }

    /// The value as JSON, if `current` is set.
    var data: UnsafeRawBufferPointer? {
        current.map { StreamDataEncoding.data(inSuffix: $0.bytes, sequence: sequence) }
    }
}

/// An event from a state's source to its broadcasters.
package enum StateEvent: Sendable {
    case update(StateUpdate)
    /// The first event for a broadcaster: the newest update and those before it, or the retained events.
    case attached(VersionLog)
    /// The newest update with its whole value, for a broadcaster that has requested it.
    case snapshot(StateUpdate)
    /// A new subscriber receives nothing now, because the filter's condition does not hold.
    case nothing
    /// The stream ends with an error, for example because the state could not be encoded.
    case failed(TrebuchetError)
    /// The streams of clients end with an error. The stream itself continues, for readers in this process and for later subscribers.
    case clientsDismissed(TrebuchetError)
    /// The actor was released.
    case ended
}

internal import Bytes
internal import TrebuchetWire

/// One version of a state, encoded once for all who observe it.
package final class StateUpdate: Sendable {
    let sequence: UInt64
    /// What follows the streamID in a `streamData` message with the whole value. Nil when there is a `patch` that was made
    /// without it, and nobody has asked for it yet.
    let current: SharedBytes?
    /// The same as the difference from an earlier version; nil when there is none or it is no smaller.
    let patch: Patch?
    /// How long `current` is or, when it is nil, was when it was encoded last.
    let wholeByteCount: Int
    /// When it was made, by the monotonic clock; 0 where that is not known here.
    let made: UInt64

    /// For those alone who have the version `base`.
    struct Patch: Sendable {
        let base: UInt64
        let sequence: UInt64
        let suffix: SharedBytes
    }

    init(sequence: UInt64, current: SharedBytes?, patch: Patch?, wholeByteCount: Int, made: UInt64 = 0) {
        self.made = made
        self.sequence = sequence
        self.current = current
        self.patch = patch
        self.wholeByteCount = wholeByteCount
    }

    /// The same without `current`, which may be large.
    var withoutWhole: StateUpdate {
        guard current != nil else { return self }
        return StateUpdate(
            sequence: sequence, current: nil, patch: patch, wholeByteCount: wholeByteCount, made: made)
    }

    /// The same without anything that could be sent.
    var withoutText: StateUpdate {
        StateUpdate(sequence: sequence, current: nil, patch: nil, wholeByteCount: wholeByteCount, made: made)
    }

    /// Whether it is a difference of a value that is too large to be kept with each of them.
    var isLargePatch: Bool { patch != nil && current?.count ?? 0 > 8 << 10 }

    /// What it counts in a turn's budget: as much as is sent of it.
    var byteCount: Int { patch?.suffix.count ?? current?.count ?? 0 }

    /// The value in JSON, where `current` is there.
    var data: UnsafeRawBufferPointer? { current.map { StreamDataParts.data(inSuffix: $0.bytes, sequence: sequence) } }
}

/// What a state's source tells those who carry it on.
package enum StateEvent: Sendable {
    case update(StateUpdate)
    /// What a broadcaster begins with: the newest update and what came before it, or the events that are kept.
    case attached(VersionLog)
    /// The newest update with its whole value, for a broadcaster that has asked for it.
    case whole(StateUpdate)
    /// There is nothing that who is new may be shown now: a filter's condition does not hold.
    case nothing
    /// The stream ends with an error: the state could not be encoded, for one.
    case failed(TrebuchetError)
    /// The actor is gone.
    case ended
}

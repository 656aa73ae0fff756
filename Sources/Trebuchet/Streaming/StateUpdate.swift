internal import Bytes
internal import TrebuchetWire

/// One version of a state, encoded once for all who observe it.
final class StateUpdate: Sendable {
    let sequence: UInt64
    /// What follows the streamID in a `streamData` message; one for each way of writing that somebody observes with.
    let current: SharedBytes?
    let legacy: SharedBytes?

    init(sequence: UInt64, current: SharedBytes?, legacy: SharedBytes?) {
        self.sequence = sequence
        self.current = current
        self.legacy = legacy
    }

    var byteCount: Int { (current?.count ?? 0) + (legacy?.count ?? 0) }

    func suffix(for version: ProtocolVersion) -> SharedBytes? { version == .v3 ? current : legacy }
}

/// What a state's source tells those who carry it on.
enum StateEvent: Sendable {
    case update(StateUpdate)
    /// The state could not be encoded.
    case failed(String)
    /// The actor is gone.
    case ended
}

internal import Bytes
internal import TrebuchetWire

/// Numbers the events of one `@StreamedEvents` property, encodes each once and hands it to one broadcaster per reactor. They
/// leave as they are sent.
///
/// `@unchecked Sendable`: it has nothing of its own.
final class EventSource: StreamHub, @unchecked Sendable {
    init(buffer: Int, home: SystemShard?, entry: @escaping Entry) {
        super.init(.events, home: home, buffer: buffer, position: 0, entry: entry)
    }

    /// In the actor's isolation.
    func send<Event: Encodable>(_ event: Event) {
        let broadcasters = current
        let sequence = recent.position + 1
        guard !broadcasters.isEmpty || isKept else {
            recent.forget()
            recent.begin(at: sequence)
            return
        }
        do {
            countEncoding()
            var data = ByteBuffer()
            try coder().encode(event, into: &data)
            let suffix = suffix(data, sequence: sequence)
            let update = StateUpdate(sequence: sequence, current: suffix, patch: nil, wholeByteCount: suffix.count)
            recent.append(update)
            for broadcaster in broadcasters { broadcaster.send(.update(update)) }
        } catch {
            // Nobody can be told of this event, so nobody may go on as if there were none.
            recent.forget()
            recent.begin(at: sequence)
            let text = "an event of type \(Event.self) cannot be encoded: \(describe(error))"
            for broadcaster in broadcasters { broadcaster.send(.failed(TrebuchetError(.internal, text))) }
        }
    }
}

/// The message from the accepting end of a link to the connecting end: the number of handled messages. It follows each message
/// of the connecting end; an empty message there only requests it.
struct NodeLinkAcknowledgement: Equatable {
    /// The number of the last message that was handled, over any path.
    var received: UInt64

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        BinaryFields.append(received, to: &bytes)
        return bytes
    }

    init(received: UInt64) { self.received = received }

    init?(_ bytes: [UInt8]) {
        var rest = bytes[...]
        guard let received = BinaryFields.number(UInt64.self, &rest), rest.isEmpty else { return nil }
        self.received = received
    }
}

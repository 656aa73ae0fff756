/// A frame on a channel between two nodes, which forwards a client's connection. The node that opens a channel assigns its number.
struct NodeFrame: Equatable, Sendable {
    /// The kinds of frames. Their raw values are part of the node protocol.
    enum Kind: UInt8, CaseIterable {
        // From the client's node to the owner node.
        /// Opens a forwarded connection: `ForwardedClient` in JSON.
        case open = 1
        /// A message of the client, or the last part of a large one.
        case toOwner
        case toOwnerPart
        /// Acknowledges received bytes: a number of eight bytes.
        case acknowledgement
        /// The client has disconnected, or its node does not need the channel any more.
        case close
        /// Another principal has signed in: `ForwardedClient` in JSON.
        case client
        /// Without a channel: the node is being stopped. It responds until its clients have gone, although it does not count as
        /// live. With a payload, it has stopped: it accepts no further messages.
        case leaving
        /// Without a channel, from an operator: requests an orderly stop of the node.
        case stop

        // From the owner node to the client's node.
        /// A message for the client, or the last part of a large one.
        case toClient
        case toClientPart
        /// The call or stream of that callID was not started: its actor belongs to another node.
        case refused
        /// The stream of that name belongs to another node from now on.
        case moved
        /// The channel has ended; in an orderly end with the number of received messages in eight bytes. Without a channel: all
        /// have, with the number of the last `NodeMessage` that was not late.
        case ended
        /// The catch-up of the resumed stream of that name is complete.
        case caughtUp
        /// The call of that callID must be repeated at the next owner, which knows whether it was executed.
        case repeatElsewhere

        /// True if frames of this kind are sent to the node that has opened the channel.
        var isToClientNode: Bool { rawValue >= Kind.toClient.rawValue }
    }

    let kind: Kind
    /// The number of the channel.
    let channelID: UInt64
    let payload: [UInt8]

    init(_ kind: Kind, channelID: UInt64, _ payload: [UInt8] = []) {
        self.kind = kind
        self.channelID = channelID
        self.payload = payload
    }

    /// The report of a node that has lost messages. Nodes that do not know it ignore it.
    static func allEnded(accepted: UInt64) -> NodeFrame {
        var payload: [UInt8] = []
        BinaryFields.append(accepted, to: &payload)
        return NodeFrame(.ended, channelID: 0, payload)
    }

    /// The report of a node that accepts no further messages, ever. It is a form of `leaving`, because nodes that do not know a kind discard
    /// the message.
    static let stopped = NodeFrame(.leaving, channelID: 0, [1])
    /// True for the report of a node that accepts no further messages.
    var isStopped: Bool { kind == .leaving && !payload.isEmpty }

    static let headBytes = 13
    var byteCount: Int { Self.headBytes + payload.count }

    /// The payload as a number of eight bytes; nil if it is shorter.
    var number: UInt64? {
        var rest = payload[...]
        return BinaryFields.number(UInt64.self, &rest)
    }
}

/// A message between two nodes: sender, number, epochs and frames.
///
/// Encoding: one byte with the version, one with the length of the sender's name, the name, the four numbers in eight bytes
/// each. Then for each frame: its kind in one byte, its channel in eight, the length of its payload in four, and the payload.
/// Numbers are little-endian.
struct NodeMessage: Equatable, Sendable {
    /// The protocol version; messages of other versions are ignored.
    static let version: UInt8 = 4

    let sender: String
    /// Consecutive numbers: a gap means that messages were lost.
    let number: UInt64
    /// The sender's epoch with this node, and this node's epoch as known to the sender; 0 if unknown.
    let epochs: Epochs
    var frames: [NodeFrame]

    /// The loss epochs of two nodes. When a node loses messages to or from a peer, all channels between them end and the node
    /// starts an epoch, which it sends to the peer. Messages sent without knowledge of the epoch belong to the ended channels.
    struct Epochs: Equatable, Sendable {
        let sender: UInt64
        let receiver: UInt64
        /// The number of the sender's last message before its epoch. If the first received message of the epoch is not its
        /// successor, messages were lost.
        let last: UInt64

        init(sender: UInt64, receiver: UInt64, last: UInt64 = 0) {
            (self.sender, self.receiver, self.last) = (sender, receiver, last)
        }
    }

    init(from sender: String, number: UInt64, _ epochs: Epochs, _ frames: [NodeFrame]) {
        self.sender = sender
        self.number = number
        self.epochs = epochs
        self.frames = frames
    }

    static func headBytes(sender: String) -> Int { 34 + sender.utf8.count }

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(frames.reduce(Self.headBytes(sender: sender)) { $0 + $1.byteCount })
        bytes.append(Self.version)
        bytes.append(UInt8(truncatingIfNeeded: sender.utf8.count))
        bytes += sender.utf8
        for number in [number, epochs.sender, epochs.receiver, epochs.last] { BinaryFields.append(number, to: &bytes) }
        for frame in frames {
            bytes.append(frame.kind.rawValue)
            BinaryFields.append(frame.channelID, to: &bytes)
            BinaryFields.append(UInt32(frame.payload.count), to: &bytes)
            bytes += frame.payload
        }
        return bytes
    }

    /// Parses a message; nil if it is invalid.
    init?(_ bytes: [UInt8]) {
        var rest = bytes[...]
        guard rest.popFirst() == Self.version, let length = rest.popFirst(), rest.count >= Int(length) else {
            return nil
        }
        sender = String(decoding: rest.prefix(Int(length)), as: UTF8.self)
        rest = rest.dropFirst(Int(length))
        guard let number = BinaryFields.number(UInt64.self, &rest), let own = BinaryFields.number(UInt64.self, &rest),
            let other = BinaryFields.number(UInt64.self, &rest), let last = BinaryFields.number(UInt64.self, &rest),
            own > 0
        else { return nil }
        self.number = number
        epochs = Epochs(sender: own, receiver: other, last: last)
        frames = []
        while let first = rest.popFirst() {
            guard let kind = NodeFrame.Kind(rawValue: first), let channelID = BinaryFields.number(UInt64.self, &rest),
                let count = BinaryFields.number(UInt32.self, &rest), rest.count >= Int(count)
            else { return nil }
            frames.append(NodeFrame(kind, channelID: channelID, Array(rest.prefix(Int(count)))))
            rest = rest.dropFirst(Int(count))
        }
    }
}

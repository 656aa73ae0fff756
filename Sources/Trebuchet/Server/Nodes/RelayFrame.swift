/// What one node tells another about a client's connection that it carries on to it. Both ends number these lines, the one that
/// opens one gives its number.
struct RelayFrame: Equatable, Sendable {
    enum Kind: UInt8, CaseIterable {
        // From the client's node to the one that owns the actors.
        /// A client's connection is carried on from now on: `RelayedClient` in JSON.
        case open = 1
        /// A message of the client's; one too large for a message between nodes comes in parts, this being the last.
        case toOwner
        case toOwnerPart
        /// So many bytes of what was sent have been taken: a number of eight bytes.
        case taken
        /// The client has gone, or the node does without this line.
        case gone
        /// Another one is signed in: `RelayedClient` in JSON.
        case client
        /// Of no line: the node is being stopped, and is there until its clients have gone, though it does not count as living.
        case leaving
        /// Of no line, and from an operator: the node is to stop in order.
        case stop

        // And back.
        /// A message for the client.
        case toClient
        case toClientPart
        /// The call or stream of that callID was not begun: its actor is another node's.
        case refused
        /// The stream of that name is another node's from now on.
        case moved
        /// The line has ended; in order when it says how many messages have come over it: a number of eight bytes.
        case ended
        /// All has gone that there was of the stream of that name when it was taken up.
        case shown
        /// The call of that callID is to be repeated at its actor's next owner, which knows whether it was done.
        case repeatElsewhere

        /// Whether it goes to the node that has opened the line.
        var isBack: Bool { rawValue >= Kind.toClient.rawValue }
    }

    let kind: Kind
    /// Of the line.
    let line: UInt64
    let payload: [UInt8]

    init(_ kind: Kind, line: UInt64, _ payload: [UInt8] = []) {
        self.kind = kind
        self.line = line
        self.payload = payload
    }

    static let headBytes = 13
    var byteCount: Int { Self.headBytes + payload.count }

    /// A number in eight bytes; nil where the payload has none.
    var number: UInt64? {
        var rest = payload[...]
        return ByteParts.number(UInt64.self, &rest)
    }
}

/// A message between two nodes: who has sent it, which it is of those between the two, and its frames.
///
/// One byte of version, one with the length of the sender's name, the name, the four numbers in eight bytes each, then for each frame its
/// kind in one byte, its line in eight, the length of its payload in four, and the payload. Numbers begin with their lowest byte.
struct RelayMessage: Equatable, Sendable {
    /// Of what is sent; another one is not understood.
    static let version: UInt8 = 3

    let sender: String
    /// One more with each: where one is missing, something was lost.
    let number: UInt64
    /// The sender's count of what it has lost with this node, and this node's as the sender knows it; 0 where it knows none.
    let epochs: Epochs
    var frames: [RelayFrame]

    /// When a node loses something that is for another one, or comes from it, all lines between the two are over, and an epoch begins, of
    /// which it tells the other. What was sent without knowing of it belongs to those lines.
    struct Epochs: Equatable, Sendable {
        let sender: UInt64
        let receiver: UInt64
        /// The number of the sender's last message before its epoch: the first one of it that comes may be a later one, and then something
        /// was lost that the sender counts on.
        let last: UInt64

        init(sender: UInt64, receiver: UInt64, last: UInt64 = 0) {
            (self.sender, self.receiver, self.last) = (sender, receiver, last)
        }
    }

    init(from sender: String, number: UInt64, _ epochs: Epochs, _ frames: [RelayFrame]) {
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
        for number in [number, epochs.sender, epochs.receiver, epochs.last] { ByteParts.append(number, to: &bytes) }
        for frame in frames {
            bytes.append(frame.kind.rawValue)
            ByteParts.append(frame.line, to: &bytes)
            ByteParts.append(UInt32(frame.payload.count), to: &bytes)
            bytes += frame.payload
        }
        return bytes
    }

    /// Nil for what no node sends.
    init?(_ bytes: [UInt8]) {
        var rest = bytes[...]
        guard rest.popFirst() == Self.version, let length = rest.popFirst(), rest.count >= Int(length) else {
            return nil
        }
        sender = String(decoding: rest.prefix(Int(length)), as: UTF8.self)
        rest = rest.dropFirst(Int(length))
        guard let number = ByteParts.number(UInt64.self, &rest), let own = ByteParts.number(UInt64.self, &rest),
            let other = ByteParts.number(UInt64.self, &rest), let last = ByteParts.number(UInt64.self, &rest), own > 0
        else { return nil }
        self.number = number
        epochs = Epochs(sender: own, receiver: other, last: last)
        frames = []
        while let first = rest.popFirst() {
            guard let kind = RelayFrame.Kind(rawValue: first), let line = ByteParts.number(UInt64.self, &rest),
                let count = ByteParts.number(UInt32.self, &rest), rest.count >= Int(count)
            else { return nil }
            frames.append(RelayFrame(kind, line: line, Array(rest.prefix(Int(count)))))
            rest = rest.dropFirst(Int(count))
        }
    }
}

internal import TrebuchetActors

/// What a call, or what begins a stream, is called on the line between two nodes: by the client's node, so that no two are confused,
/// whatever the client calls them. It is a callID as any other.
struct LineCallID: Equatable {
    private static let mark = UInt8(ascii: "~")
    private static let own = "+"
    private static let sharing = "?"
    /// What a stream is called of which it is only said that it may begin; no owner calls one so.
    static let permission = Array(sharing.utf8)

    /// Which of the line's messages it is.
    let place: UInt64
    /// Whether the node itself takes up a stream with it that its client has begun long ago.
    var isOfNode = false
    /// Whether the client's node would take the stream itself, for all of its clients: then it is to be said only whether this one may
    /// observe.
    var mayShare = false
    /// For a call whose answer is kept: the client's own number, by which it is known wherever it comes again.
    var number: UInt64?

    init(place: UInt64, number: UInt64? = nil, isOfNode: Bool = false, mayShare: Bool = false) {
        (self.place, self.number, self.isOfNode, self.mayShare) = (place, number, isOfNode, mayShare)
    }

    var bytes: [UInt8] {
        let before = isOfNode ? Self.own : number.map { "\($0)" } ?? ""
        return Array("\(before)\(mayShare ? Self.sharing : "")~\(place)".utf8)
    }

    /// Nil for what no node sends.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard let mark = bytes.lastIndex(of: Self.mark),
            let place = UInt64(String(decoding: bytes[(mark + 1)...], as: UTF8.self))
        else { return nil }
        var before = String(decoding: bytes[..<mark], as: UTF8.self)
        self.place = place
        if before.hasSuffix(Self.sharing) {
            mayShare = true
            before.removeLast()
        }
        isOfNode = before == Self.own
        guard !isOfNode, !before.isEmpty else { return }
        guard let number = UInt64(before) else { return nil }
        self.number = number
    }
}

extension Message {
    /// The same message under another callID. It has one.
    func renamed(_ callID: [UInt8]) -> [UInt8] {
        let range = envelope.pointee.callID
        let (start, end) = (Int(range.offset), Int(range.offset + range.count))
        var message: [UInt8] = []
        message.reserveCapacity(bytes.count + callID.count)
        message += bytes[..<start]
        message += callID
        message += bytes[end...]
        return message
    }
}

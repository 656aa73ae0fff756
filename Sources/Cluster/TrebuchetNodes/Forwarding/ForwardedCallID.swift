/// The callID of a call or stream request on the channel between two nodes. The client's node assigns it, so that callIDs are
/// unique whatever the client uses. On the wire it is an ordinary callID.
struct ForwardedCallID: Equatable {
    private static let mark = UInt8(ascii: "~")
    private static let own = "+"
    private static let sharing = "?"
    /// The callID of a permission: the owner only says that the client may observe. No owner uses it for a stream.
    static let permission = Array(sharing.utf8)

    /// The index of the message on the channel.
    let messageIndex: UInt64
    /// True if the node itself resumes a stream that its client began earlier.
    var isOfNode = false
    /// True if the client's node can subscribe to the stream for all of its clients. Then the owner only decides whether this
    /// client may observe.
    var mayShare = false
    /// The client's number of a call with a recorded response, which identifies it when it is repeated.
    var number: UInt64?

    init(messageIndex: UInt64, number: UInt64? = nil, isOfNode: Bool = false, mayShare: Bool = false) {
        (self.messageIndex, self.number, self.isOfNode, self.mayShare) = (messageIndex, number, isOfNode, mayShare)
    }

    var bytes: [UInt8] {
        let before = isOfNode ? Self.own : number.map { "\($0)" } ?? ""
        return Array("\(before)\(mayShare ? Self.sharing : "")~\(messageIndex)".utf8)
    }

    /// Parses a callID; nil if it is invalid.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard let mark = bytes.lastIndex(of: Self.mark),
            let index = UInt64(String(decoding: bytes[(mark + 1)...], as: UTF8.self))
        else { return nil }
        var before = String(decoding: bytes[..<mark], as: UTF8.self)
        self.messageIndex = index
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

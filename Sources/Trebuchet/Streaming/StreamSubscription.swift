/// One stream to one client. On its session's reactor.
final class StreamSubscription {
    let streamID: [UInt8]
    let node: StateNode
    /// The session removes the subscription before it goes.
    unowned let session: Session
    /// The sequence number of the last update that was sent.
    var sent: UInt64 = 0
    private var shortPlace: Int32 = -1
    /// Whether it counts as one with a filter too, in its session's shares.
    let isFiltered: Bool

    /// Where the node keeps it; -1 when it does not.
    var place: Int {
        get { Int(shortPlace) }
        set { shortPlace = Int32(newValue) }
    }

    init(streamID: [UInt8], node: StateNode, session: Session, isFiltered: Bool) {
        self.isFiltered = isFiltered
        self.streamID = streamID
        self.node = node
        self.session = session
    }
}

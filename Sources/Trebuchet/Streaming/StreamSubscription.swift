/// One stream to one client. On its session's reactor.
final class StreamSubscription {
    let streamID: [UInt8]
    let node: StateNode
    /// The session removes the subscription before it goes.
    unowned let session: Session
    /// The sequence number of the last update that was sent.
    var sent: UInt64 = 0
    /// Where the node keeps it; -1 when it does not.
    var place = -1
    /// What it uses of shares.
    let stakes: [Stake]

    init(streamID: [UInt8], node: StateNode, session: Session, stakes: [Stake]) {
        self.stakes = stakes
        self.streamID = streamID
        self.node = node
        self.session = session
    }
}

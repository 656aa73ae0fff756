internal import Bytes
internal import Networking
internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire

/// Whose lines to owners they are: a client's connection.
protocol OwnerLineUser: AnyObject {
    /// Whether the client takes more.
    var isWritable: Bool { get }
    /// An owner sends the client something.
    func receive(_ bytes: UnsafeRawBufferPointer, over line: OwnerLine)
    /// An owner does not own what a call or stream is of.
    func refused(_ callID: [UInt8], over line: OwnerLine)
    /// A stream's actor has another owner from now on.
    func moved(_ streamID: [UInt8], over line: OwnerLine)
    /// Nothing more comes over a line.
    ///
    /// - Parameter received: how many messages its owner has got over it; nil when that is not known.
    func ended(_ line: OwnerLine, received: UInt64?)
    /// The same, since too much waited for its node.
    func overflowed(_ line: OwnerLine, received: UInt64)
}

/// A client's line to one node that owns actors which it uses.
///
/// `@unchecked Sendable`: on the connection's reactor alone, but for its constants.
final class OwnerLine: RelayEnd, @unchecked Sendable {
    /// What was taken is told when it is so much; an owner sends `RelayedLink.window` beyond it.
    private static let tellingBytes = 16 << 10

    let reactor: Reactor
    let node: ClusterNode
    private weak var user: (any OwnerLineUser)?
    private var line: RelayLine!
    /// What has come of a message.
    private var parts: [UInt8] = []
    private var taken = 0
    /// Messages that were sent.
    private var sent: UInt64 = 0

    init(_ user: any OwnerLineUser, to node: ClusterNode, at exchange: NodeExchange, reactor: Reactor) {
        self.user = user
        self.node = node
        self.reactor = reactor
        line = exchange.newLine(to: node, self)
    }

    func open(_ client: RelayedClient) { line.send(.open, client.payload) }
    func send(_ kind: RelayFrame.Kind, _ payload: [UInt8]) { line.send(kind, payload) }

    /// Gives the number of the message among all of the line.
    @discardableResult
    func send(_ message: UnsafeRawBufferPointer, _ departure: Departure? = nil) -> UInt64 {
        line.send(message, part: .toOwnerPart, last: .toOwner, departure)
        sent += 1
        return sent
    }

    /// Nobody wants a stream.
    func unsubscribe(_ streamID: [UInt8]) {
        var buffer = ByteBuffer()
        EnvelopeWriter.streamEnd(streamID: streamID, reason: .clientUnsubscribed, into: &buffer)
        send(buffer.bytes)
    }

    func close() {
        line.send(.gone)
        line.forget()
    }

    /// As soon as the client takes more.
    func tellWhatWasTaken() {
        guard taken >= Self.tellingBytes, user?.isWritable == true else { return }
        line.send(.taken, number: UInt64(taken))
        taken = 0
    }

    // MARK: RelayEnd

    func receive(_ frame: RelayFrame) {
        guard let user else { return }
        switch frame.kind {
        case .toClientPart: parts += frame.payload
        case .toClient:
            taken += parts.count + frame.payload.count
            if parts.isEmpty {
                frame.payload.withUnsafeBytes { user.receive($0, over: self) }
            } else {
                let message = parts + frame.payload
                parts = []
                message.withUnsafeBytes { user.receive($0, over: self) }
            }
            tellWhatWasTaken()
        case .refused: user.refused(frame.payload, over: self)
        case .moved: user.moved(frame.payload, over: self)
        case .ended:
            line.forget()
            user.ended(self, received: frame.number)
        default: break
        }
    }

    func lineDidBreak(received: UInt64) {
        // The other end may be there yet.
        close()
        user?.ended(self, received: received)
    }

    func lineDidOverflow(received: UInt64) {
        close()
        user?.overflowed(self, received: received)
    }
}

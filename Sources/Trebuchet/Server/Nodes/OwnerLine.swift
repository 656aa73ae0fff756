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
    /// An owner does not own what was asked of it.
    func refused(_ asked: OwnerLine.Asked, over line: OwnerLine)
    /// An owner has lost a call that it may have begun. The call continues as a repeat.
    func refusedAfterBeginning(_ call: RelayedCall, over line: OwnerLine)
    /// A stream's actor has another owner from now on.
    func moved(_ streamID: [UInt8], over line: OwnerLine)
    /// What comes of a stream from now on is new.
    func shown(_ streamID: [UInt8], over line: OwnerLine)
    /// Nobody waits for a call any more.
    func cancelled(_ call: RelayedCall)
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
    static let tellingBytes = 16 << 10

    /// What has been asked of an owner and has no answer.
    enum Asked {
        /// Also what begins a stream, or takes one up, for a client that waits for that.
        case call(RelayedCall)
        /// A stream that goes on without its client's doing.
        case stream(RelayedStream)
    }

    let reactor: Reactor
    let node: ClusterNode
    private weak var user: (any OwnerLineUser)?
    private var line: RelayLine!
    /// What has come of a message.
    private var parts: [UInt8] = []
    private var taken = 0
    /// Messages that were sent.
    private var sent: UInt64 = 0
    /// By which message it was.
    private var asked: [UInt64: Asked] = [:]
    /// Of these, what a client takes up under its own name for it, which has no callID: by that name.
    private var named: [[UInt8]: RelayedCall] = [:]

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

    // MARK: What is asked

    func ask(_ call: RelayedCall) {
        call.line = self
        let departure = call.depart()
        call.withMessage { message in
            guard !message.envelope.pointee.callID.isAbsent else {
                named[call.callID] = call
                call.place = send(message.bytes, departure)
                return
            }
            let callID = LineCallID(
                place: sent + 1, number: call.number, mayShare: call.stream?.mayShare == true)
            asked[callID.place] = .call(call)
            call.place = callID.place
            message.renamed(callID.bytes).withUnsafeBytes { _ = send($0, departure) }
        }
    }

    func ask(_ stream: RelayedStream) {
        stream.line = self
        let callID = LineCallID(place: sent + 1, isOfNode: true, mayShare: stream.mayShare)
        asked[callID.place] = .stream(stream)
        stream.resumption(as: callID.bytes).withUnsafeBytes { _ = send($0) }
    }

    /// What comes of a stream over this line is not wanted: it is asked for elsewhere.
    func forget(_ stream: RelayedStream) {
        let place = asked.first { if case .stream(let other) = $0.value { other === stream } else { false } }?.key
        if let place { asked[place] = nil }
    }

    /// What an answer is to; nil where nobody waits for it any more.
    func take(_ callID: UnsafeRawBufferPointer) -> Asked? {
        LineCallID(callID).flatMap { asked.removeValue(forKey: $0.place) }
    }

    /// The same for what has no callID.
    func take(named streamID: [UInt8]) -> RelayedCall? { named.removeValue(forKey: streamID) }

    /// All that has no answer, in the order in which it was sent.
    func takeAll() -> [Asked] {
        defer { (asked, named) = ([:], [:]) }
        let all = asked.map { ($0, $1) } + named.values.map { ($0.place, .call($0)) }
        return all.sorted { $0.0 < $1.0 }.map(\.1)
    }

    /// Nobody waits for its answer.
    func cancel(_ call: RelayedCall) {
        let isNamed = asked.removeValue(forKey: call.place) == nil
        if isNamed { named[call.callID] = nil }
        let callID =
            isNamed
            ? call.callID
            : LineCallID(
                place: call.place, number: call.number, mayShare: call.stream?.mayShare == true
            ).bytes
        var buffer = ByteBuffer()
        EnvelopeWriter.cancel(callID: String(decoding: callID, as: UTF8.self), into: &buffer)
        send(buffer.bytes)
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

    /// The same, and nobody waits for what was asked over it.
    func end() {
        close()
        _ = takeAll()
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
        case .refused:
            let asked = frame.payload.withUnsafeBytes { take($0) }
            if let asked { user.refused(asked, over: self) }
        case .repeatElsewhere:
            let asked = frame.payload.withUnsafeBytes { take($0) }
            if case .call(let call)? = asked { user.refusedAfterBeginning(call, over: self) }
        case .moved: user.moved(frame.payload, over: self)
        case .shown: user.shown(frame.payload, over: self)
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

internal import Bytes
internal import Networking
internal import Trebuchet
internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire

/// The client connection that uses owner channels.
protocol OwnerChannelDelegate: AnyObject {
    /// True if the client can receive more.
    var isWritable: Bool { get }
    /// Handles a message of an owner for the client.
    func receive(_ bytes: UnsafeRawBufferPointer, over channel: OwnerChannel)
    /// Handles a request that an owner refused because it does not own the actor.
    func requestWasRefused(_ request: OwnerChannel.PendingRequest, over channel: OwnerChannel)
    /// Handles a call that an owner has lost and may have started. The call continues as a repeat.
    func callMustBeRepeated(_ call: ForwardedCall, over channel: OwnerChannel)
    /// Called when a stream's actor has another owner.
    func streamDidMove(_ streamID: [UInt8], over channel: OwnerChannel)
    /// Called when the catch-up of a stream is complete.
    func streamDidCatchUp(_ streamID: [UInt8], over channel: OwnerChannel)
    /// Handles the cancellation of a call.
    func callWasCancelled(_ call: ForwardedCall)
    /// Called when a channel has ended.
    ///
    /// - Parameter received: the number of messages that the owner received over it; nil if unknown.
    func channelDidEnd(_ channel: OwnerChannel, received: UInt64?)
    /// Called when a channel has ended because too much data waited for its node.
    func channelDidOverflow(_ channel: OwnerChannel, received: UInt64)
}

/// The channel of a client to one node that owns actors which the client uses.
///
/// `@unchecked Sendable`: used on the connection's reactor only, except for constants.
final class OwnerChannel: NodeChannelHandler, @unchecked Sendable {
    /// The number of received bytes after which they are acknowledged; an owner may send `ForwardedLink.window` bytes ahead.
    static let acknowledgementThreshold = 16 << 10

    /// A request to the owner without a response.
    enum PendingRequest {
        /// A call, or a request of the client to begin or resume a stream.
        case call(ForwardedCall)
        /// An attempt of the node to resume a stream for the client.
        case stream(ForwardedStreams.Attempt)
    }

    let reactor: Reactor
    let node: ClusterNode
    /// The number of the channel among those of its client.
    let number: ForwardedStream.ChannelNumber
    private weak var user: (any OwnerChannelDelegate)?
    private var channel: NodeChannel!
    /// The received parts of an incomplete message.
    private var parts: [UInt8] = []
    private var unacknowledgedBytes = 0
    /// The number of sent messages.
    private var sent: UInt64 = 0
    /// The pending requests by the index of their message.
    private var pendingRequests: [UInt64: PendingRequest] = [:]
    /// Pending resumptions without a callID, by the client's stream name.
    private var namedResumptions: [[UInt8]: ForwardedCall] = [:]

    init(
        _ user: any OwnerChannelDelegate, to node: ClusterNode, number: ForwardedStream.ChannelNumber,
        at exchange: NodeTransport, reactor: Reactor
    ) {
        self.user = user
        self.number = number
        self.node = node
        self.reactor = reactor
        channel = exchange.makeChannel(to: node, self)
    }

    func open(_ client: ForwardedClient) { channel.send(.open, client.payload) }
    func send(_ kind: NodeFrame.Kind, _ payload: [UInt8]) { channel.send(kind, payload) }

    /// Sends a message and returns its index on the channel.
    @discardableResult
    func send(_ message: UnsafeRawBufferPointer, _ completion: SendCompletion? = nil) -> UInt64 {
        channel.send(message, part: .toOwnerPart, last: .toOwner, completion)
        sent += 1
        return sent
    }

    // MARK: Requests

    func sendRequest(_ call: ForwardedCall) {
        call.channel = self
        let completion = call.makeSendCompletion()
        call.withMessage { message in
            guard !message.envelope.pointee.callID.isAbsent else {
                namedResumptions[call.callID] = call
                call.messageIndex = send(message.bytes, completion)
                return
            }
            let callID = ForwardedCallID(
                messageIndex: sent + 1, number: call.number, mayShare: call.stream?.mayShare == true)
            pendingRequests[callID.messageIndex] = .call(call)
            call.messageIndex = callID.messageIndex
            message.renamed(callID.bytes).withUnsafeBytes { _ = send($0, completion) }
        }
    }

    func sendRequest(_ stream: ForwardedStream, _ attempt: ForwardedStreams.Attempt) {
        let callID = ForwardedCallID(messageIndex: sent + 1, isOfNode: true, mayShare: stream.mayShare)
        pendingRequests[callID.messageIndex] = .stream(attempt)
        stream.resumption(as: callID.bytes).withUnsafeBytes { _ = send($0) }
    }

    /// Removes and returns the request of a response; nil if it was cancelled.
    func removeRequest(withID callID: UnsafeRawBufferPointer) -> PendingRequest? {
        ForwardedCallID(callID).flatMap { pendingRequests.removeValue(forKey: $0.messageIndex) }
    }

    /// Removes and returns the resumption of a stream without a callID.
    func removeResumption(named streamID: [UInt8]) -> ForwardedCall? { namedResumptions.removeValue(forKey: streamID) }

    /// Removes and returns all pending requests, in the order in which they were sent.
    func removeAllRequests() -> [PendingRequest] {
        defer { (pendingRequests, namedResumptions) = ([:], [:]) }
        let all = pendingRequests.map { ($0, $1) } + namedResumptions.values.map { ($0.messageIndex, .call($0)) }
        return all.sorted { $0.0 < $1.0 }.map(\.1)
    }

    /// Cancels a call at the owner.
    func cancel(_ call: ForwardedCall) {
        let isNamed = pendingRequests.removeValue(forKey: call.messageIndex) == nil
        if isNamed { namedResumptions[call.callID] = nil }
        let callID =
            isNamed
            ? call.callID
            : ForwardedCallID(
                messageIndex: call.messageIndex, number: call.number, mayShare: call.stream?.mayShare == true
            ).bytes
        var buffer = ByteBuffer()
        EnvelopeWriter.cancel(callID: String(decoding: callID, as: UTF8.self), into: &buffer)
        send(buffer.bytes)
    }

    /// Unsubscribes a stream at the owner.
    func unsubscribe(_ streamID: [UInt8]) {
        var buffer = ByteBuffer()
        EnvelopeWriter.streamEnd(streamID: streamID, reason: .clientUnsubscribed, into: &buffer)
        send(buffer.bytes)
    }

    func close() {
        channel.send(.close)
        channel.discard()
    }

    /// Closes the channel and discards its pending requests.
    func shutDown() {
        close()
        _ = removeAllRequests()
    }

    /// Acknowledges received bytes if the client can receive more.
    func acknowledgeReceivedBytes() {
        guard unacknowledgedBytes >= Self.acknowledgementThreshold, user?.isWritable == true else { return }
        channel.send(.acknowledgement, number: UInt64(unacknowledgedBytes))
        unacknowledgedBytes = 0
    }

    // MARK: NodeChannelHandler

    func receive(_ frame: NodeFrame) {
        guard let user else { return }
        switch frame.kind {
        case .toClientPart: parts += frame.payload
        case .toClient:
            unacknowledgedBytes += parts.count + frame.payload.count
            if parts.isEmpty {
                frame.payload.withUnsafeBytes { user.receive($0, over: self) }
            } else {
                let message = parts + frame.payload
                parts = []
                message.withUnsafeBytes { user.receive($0, over: self) }
            }
            acknowledgeReceivedBytes()
        case .refused:
            let request = frame.payload.withUnsafeBytes { removeRequest(withID: $0) }
            if let request { user.requestWasRefused(request, over: self) }
        case .repeatElsewhere:
            let request = frame.payload.withUnsafeBytes { removeRequest(withID: $0) }
            if case .call(let call)? = request { user.callMustBeRepeated(call, over: self) }
        case .moved: user.streamDidMove(frame.payload, over: self)
        case .caughtUp: user.streamDidCatchUp(frame.payload, over: self)
        case .ended:
            channel.discard()
            user.channelDidEnd(self, received: frame.number)
        default: break
        }
    }

    func channelDidBreak(received: UInt64) {
        // The other end may still exist.
        close()
        user?.channelDidEnd(self, received: received)
    }

    func channelDidOverflow(received: UInt64) {
        close()
        user?.channelDidOverflow(self, received: received)
    }
}

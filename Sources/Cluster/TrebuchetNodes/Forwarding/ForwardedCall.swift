internal import Trebuchet
internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire

/// A call that is forwarded to another node.
final class ForwardedCall: ForwardedRequest {
    let actor: String
    let slot: ClusterSlot
    /// The client's callID.
    let callID: [UInt8]
    /// The index of the call on its connection.
    let order: UInt64
    /// The client's number of a call with a recorded response.
    let number: UInt64?
    private let message: OwnedMessage
    let isRepeatable: Bool
    private var isRepeat = false
    private weak var user: (any OwnerChannelDelegate)?
    /// The channel that it was sent over; nil while it waits to be sent.
    var channel: OwnerChannel?
    /// Set while its message is in this node's memory.
    private weak var sendCompletion: SendCompletion?
    /// The index of its message on the channel.
    var messageIndex: UInt64 = 0
    /// Set for a request that begins or resumes a stream, until it has started.
    private(set) var stream: ForwardedStream?

    /// - Parameter isRepeatable: whether its owner recognizes it when it is repeated.
    init(
        _ message: borrowing Message, callID: [UInt8], order: UInt64, isRepeatable: Bool, stream: ForwardedStream?,
        of user: any OwnerChannelDelegate
    ) {
        self.message = OwnedMessage(message)
        self.callID = callID
        self.order = order
        self.isRepeatable = isRepeatable
        self.stream = stream
        self.user = user
        number = message.envelope.pointee.session.isAbsent ? nil : UInt64(String(decoding: callID, as: UTF8.self))
        actor = message.actorName
        slot = ClusterSlot(of: actor)
    }

    /// True if the client resumes an existing stream.
    var isResumption: Bool { message.withMessage { $0.kind == .streamResume } }

    /// True if this node or its client has sent the call before, so that it may have run.
    var mayHaveRun: Bool { isRepeat || message.withMessage { $0.wasSentBefore } }

    /// Returns the error for a refusal of the call.
    func refusal(_ error: TrebuchetError) -> TrebuchetError { mayHaveRun ? error.ofSentCall : error }

    /// Returns whether the call may be sent again. The beginning of a stream changes nothing, and a call that its
    /// owner recognizes is sent as a repeat.
    func mayBeResent() -> Bool {
        guard stream == nil else { return true }
        isRepeat = true
        return isRepeatable
    }

    /// Creates the token of its message, which is about to be sent.
    func makeSendCompletion() -> SendCompletion {
        let created = SendCompletion()
        sendCompletion = created
        return created
    }

    /// Removes and returns the stream, which starts.
    func removeStream() -> ForwardedStream? {
        defer { stream = nil }
        return stream
    }

    func withMessage(_ body: (borrowing Message) -> Void) {
        message.withMessage { message in
            guard isRepeat, message.kind == .invocation else { return body(message) }
            message.withRepeat(body)
        }
    }

    var mayHaveBegun: Bool { channel != nil || mayHaveRun }

    func whenSent(_ body: @escaping @Sendable () -> Void) -> Bool {
        guard let sendCompletion else { return false }
        sendCompletion.onEnd(body)
        return true
    }

    func cancel() { user?.callWasCancelled(self) }
}

internal import Bytes
internal import Trebuchet
internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire

/// A client's stream of an actor on another node: what the client observes, the position that it has received, and a state machine.
/// The machine maps inputs to actions and does no I/O. `Docs/Internals/ForwardedStreams.md` has the table of its transitions.
struct ForwardedStream {
    /// The number of an owner channel of the client. It is not used again after the end of the channel.
    typealias ChannelNumber = UInt64

    /// A phase, with what exists in it.
    enum Phase: Hashable {
        /// The client's request waits or was sent, as a `ForwardedCall`.
        case requested
        /// The stream waits for the owner of its slot.
        case queued
        /// The stream waits for the end of a pause, and then for the owner.
        case paused
        /// A request to resume it was sent.
        case resuming(over: ChannelNumber)
        /// This node owns the actor and resumes the stream itself.
        case resumingHere
        /// The owner has resumed it, and versions that the client lacks may still arrive.
        case catchingUp(over: ChannelNumber)
        /// The owner sends it.
        case live(over: ChannelNumber)
        /// It belongs to the forwarder no longer.
        case ended

        /// True if the client lacks versions, so that responses of the actor's owner wait.
        var isAwaited: Bool {
            switch self {
            case .queued, .paused, .resuming, .resumingHere, .catchingUp: true
            case .requested, .live, .ended: false
            }
        }

        /// The channel over which the stream arrives; nil if none does.
        var source: ChannelNumber? {
            switch self {
            case .catchingUp(let channel), .live(let channel): channel
            default: nil
            }
        }

        /// The channel that a message of its owner is expected from; nil if there is none.
        var channel: ChannelNumber? {
            if case .resuming(let channel) = self { channel } else { source }
        }
    }

    /// An event. `over` is the channel on which it happened.
    enum Input {
        /// The owner of the slot is the node of this channel.
        case ownerFound(over: ChannelNumber)
        /// This node is the owner.
        case ownerIsHere
        /// The slot has a new owner: the node of this channel; nil if it is this node or there is no channel yet.
        case ownerChanged(to: ChannelNumber?)
        /// The owner has started the stream.
        case started(Start, over: ChannelNumber)
        /// The owner permits the client to observe the stream, which this node receives once for all of its clients.
        case permitted(over: ChannelNumber)
        /// The node of the channel does not own the actor.
        case refused(over: ChannelNumber)
        /// The owner cannot resume the stream.
        case failed(isTemporary: Bool, over: ChannelNumber)
        /// A version of the stream has arrived.
        case updated(sequence: UInt64?, over: ChannelNumber)
        /// Every version that the client lacked has arrived.
        case caughtUp(over: ChannelNumber)
        /// The owner has ended the stream, whose actor moves.
        case moved(over: ChannelNumber)
        /// The stream has ended, for example with an error.
        case finished(over: ChannelNumber)
        /// The channel has ended.
        case channelLost(ChannelNumber)
        /// The pause is over, or a call of the slot has arrived.
        case pauseEnded
        /// Catching up has taken longer than responses wait.
        case catchUpTimedOut
        /// The client has ended the stream, or must not observe it any more.
        case cancelled
        /// The connection has started the stream at this node, or cannot.
        case resumedHere
    }

    /// The start of a stream at its owner.
    struct Start {
        /// The name that the owner has given the stream.
        let streamID: [UInt8]
        let epoch: String
        /// The position of the client according to the owner. In a known epoch it is the current position of the stream, and the
        /// missing versions still follow.
        let position: UInt64?
    }

    /// A step to take after an input.
    enum Action: Hashable {
        case none
        /// Look up the owner of the slot; report `ownerFound` or `ownerIsHere`.
        case lookUpOwner
        /// Remove the node of this channel as the known owner, then look up the owner.
        case replaceOwner(over: ChannelNumber)
        /// Send the owner the request to resume the stream.
        case sendRequest(over: ChannelNumber)
        /// Resume the stream at this node; report `resumedHere`.
        case resumeHere
        /// Report `pauseEnded` after a pause.
        case pause
        /// Send the message to the client.
        case passOn
        /// Send the client the start of the stream, under the client's callID.
        case passOnStart
        /// Start the stream from this node's copy. The connection owns it from now on.
        case share
        /// Tell the client that its stream has failed.
        case fail
        /// Unsubscribe the stream at this channel's node.
        case unsubscribe(over: ChannelNumber)
        /// Unsubscribe the stream at this channel's node, and look up the owner.
        case leave(over: ChannelNumber)
    }

    /// The callID with which the client began it.
    let callID: [UInt8]
    let slot: ClusterSlot
    let actor: ActorName
    let target: String
    let filter: StreamFilter?
    /// True if the client's node may share the stream among its clients.
    let mayShare: Bool
    /// The name by which the client knows it; empty before it has started.
    private(set) var streamID: [UInt8] = []
    /// The last epoch of which the client has received anything; empty if none.
    private(set) var epoch: String
    /// The last received sequence number.
    private(set) var sequence: UInt64
    private(set) var phase: Phase
    /// Its reservation for the client's connection, independent of the actor's owner.
    var reservation: StreamReservation?

    /// Creates the stream of a client's request, with the client's position.
    init(
        callID: [UInt8], actor: ActorName, target: String, filter: StreamFilter?, epoch: String = "",
        sequence: UInt64 = 0, mayShare: Bool = false, reservation: StreamReservation? = nil
    ) {
        (self.epoch, self.sequence) = (epoch, sequence)
        // The versions of a filtered stream are different for each client.
        self.mayShare = mayShare && filter == nil
        self.reservation = reservation
        self.callID = callID
        self.actor = actor
        self.target = target
        self.filter = filter
        phase = .requested
        slot = ClusterSlot(of: actor.text)
    }

    /// Creates the forwarded form of a stream that began at this node.
    init(_ moving: MovingStream, at position: StreamRequest.ResumePosition, pauses: Bool) {
        let stream = moving.stream
        self.init(
            callID: stream.callID, actor: ActorName(stream.actor), target: stream.target, filter: stream.filter,
            epoch: position.epoch, sequence: position.sequence, mayShare: moving.mayShare,
            reservation: moving.reservation)
        streamID = moving.streamID
        phase = pauses ? .paused : .queued
    }

    /// Handles an input.
    mutating func handle(_ input: Input) -> Action {
        let (next, action) = Self.step(phase, input)
        phase = next
        switch (action, input) {
        case (.passOn, .updated(let sequence?, _)): self.sequence = sequence
        case (.passOnStart, .started(let start, _)): begin(start)
        // The connection takes a new one.
        case (.resumeHere, _): reservation = nil
        default: break
        }
        return action
    }

    /// Returns the next phase, and what to do. An input that is not expected in the phase, such as a late message of a former owner,
    /// changes nothing.
    static func step(_ phase: Phase, _ input: Input) -> (Phase, Action) {
        switch (phase, input) {
        case (.queued, .ownerFound(let channel)): (.resuming(over: channel), .sendRequest(over: channel))
        case (.queued, .ownerIsHere): (.resumingHere, .resumeHere)
        case (.resumingHere, .resumedHere): (.ended, .none)
        case (.requested, .started(_, let channel)): (.live(over: channel), .passOnStart)
        case (.resuming(let asked), .started(_, let channel)) where asked == channel:
            (.catchingUp(over: channel), .passOnStart)
        // The client has ended the stream, or another node resumes it.
        case (_, .started(_, let channel)): (phase, .unsubscribe(over: channel))
        case (.requested, .permitted): (.ended, .share)
        case (.resuming(let asked), .permitted(let channel)) where asked == channel: (.ended, .share)
        case (.resuming(let asked), .refused(let channel)) where asked == channel:
            (.queued, .replaceOwner(over: channel))
        case (.resuming(let asked), .failed(let isTemporary, let channel)) where asked == channel:
            isTemporary ? (.paused, .pause) : (.ended, .fail)
        case (_, .updated(_, let channel)) where phase.source == channel: (phase, .passOn)
        case (.catchingUp(let source), .caughtUp(let channel)) where source == channel: (.live(over: channel), .none)
        case (.catchingUp(let source), .catchUpTimedOut): (.live(over: source), .none)
        case (_, .moved(let channel)) where phase.source == channel: (.queued, .replaceOwner(over: channel))
        case (_, .finished(let channel)) where phase.source == channel: (.ended, .passOn)
        case (.paused, .ownerChanged), (.paused, .pauseEnded): (.queued, .lookUpOwner)
        case (.resuming(let asked), .ownerChanged(let channel)) where asked != channel: (.queued, .lookUpOwner)
        case (.catchingUp(let source), .ownerChanged(let channel)) where source != channel,
            (.live(let source), .ownerChanged(let channel)) where source != channel:
            (.queued, .leave(over: source))
        case (_, .channelLost(let channel)) where phase.channel == channel: (.queued, .lookUpOwner)
        // The connection ends a stream that it resumes.
        case (.resumingHere, .cancelled): (phase, .none)
        case (_, .cancelled): (.ended, phase.source.map { .unsubscribe(over: $0) } ?? .none)
        default: (phase, .none)
        }
    }

    private mutating func begin(_ start: Start) {
        streamID = start.streamID
        if !start.epoch.utf8.elementsEqual(epoch.utf8) { sequence = start.position ?? 0 }
        epoch = start.epoch
    }

    /// Returns the stream as this node starts it from its own copy.
    func shared(as start: Start) -> Self {
        var stream = self
        stream.begin(start)
        return stream
    }

    /// Returns the message that resumes it.
    func resumption(as callID: [UInt8]) -> [UInt8] {
        var buffer = ByteBuffer()
        EnvelopeWriter.streamResume(
            streamID: String(decoding: streamID, as: UTF8.self), callID: String(decoding: callID, as: UTF8.self),
            actorID: actor.text, target: target, epoch: epoch, lastSequence: sequence, filter: filter, into: &buffer)
        return Array(buffer.bytes)
    }
}

internal import Bytes
internal import Trebuchet
internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire

/// A stream of an actor on another node, with the position that its client has received.
final class ForwardedStream {
    /// The callID with which the client began it.
    let callID: [UInt8]
    let slot: ClusterSlot
    let actor: String
    let target: String
    let filter: StreamFilter?
    private(set) var streamID: [UInt8] = []
    private(set) var epoch: String
    var sequence: UInt64
    /// Nil while the owner of its actor is unknown.
    var channel: OwnerChannel?
    /// True if the client's node may share the stream among its clients.
    let mayShare: Bool
    /// True if the client still observes the stream.
    var isOpen = true {
        didSet { if !isOpen { reservation = nil } }
    }
    /// Its reservation for the client's connection, independent of the actor's owner.
    var reservation: StreamReservation?

    /// - Parameters:
    ///   - epoch: the last epoch of which the client has received anything; empty if none.
    ///   - sequence: the last received sequence number.
    ///   - mayShare: whether it may be shared; a stream with a filter is never shared.
    init(
        callID: [UInt8], actor: String, target: String, filter: StreamFilter?, epoch: String = "", sequence: UInt64 = 0,
        mayShare: Bool = false, reservation: StreamReservation? = nil
    ) {
        (self.epoch, self.sequence) = (epoch, sequence)
        self.mayShare = mayShare && filter == nil
        self.reservation = reservation
        self.callID = callID
        self.actor = actor
        self.target = target
        self.filter = filter
        slot = ClusterSlot(of: actor)
    }

    /// Creates the forwarded form of a stream that began at this node.
    convenience init(_ moving: MovingStream, at position: StreamRequest.ResumePosition) {
        let stream = moving.stream
        self.init(
            callID: stream.callID, actor: stream.actor, target: stream.target, filter: stream.filter,
            epoch: position.epoch, sequence: position.sequence, mayShare: moving.mayShare,
            reservation: moving.reservation)
        streamID = moving.streamID
    }

    /// - Parameter position: the position of the client according to the owner. In a known epoch it is the current position of
    ///   the stream, and the missing versions still follow.
    func startStream(as streamID: [UInt8], epoch: String, position: UInt64?) {
        self.streamID = streamID
        if !epoch.utf8.elementsEqual(self.epoch.utf8) { sequence = position ?? 0 }
        self.epoch = epoch
    }

    /// Returns the message that resumes it.
    func resumption(as callID: [UInt8]) -> [UInt8] {
        var buffer = ByteBuffer()
        EnvelopeWriter.streamResume(
            streamID: String(decoding: streamID, as: UTF8.self), callID: String(decoding: callID, as: UTF8.self),
            actorID: actor, target: target, epoch: epoch, lastSequence: sequence, filter: filter, into: &buffer)
        return Array(buffer.bytes)
    }
}

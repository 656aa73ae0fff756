internal import Bytes
internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire

/// A place in the shares of a connection, as long as somebody has this.
protocol HeldPlace: AnyObject {}

/// A stream of an actor of another node's, and how far its client is.
final class RelayedStream {
    /// Under which the client has begun it.
    let callID: [UInt8]
    let slot: ClusterSlot
    let actor: String
    let target: String
    let filter: StreamFilter?
    private(set) var streamID: [UInt8] = []
    private(set) var epoch: String
    var sequence: UInt64
    /// Nil while it is not known who owns its actor.
    var line: OwnerLine?
    /// Whether the client's node may take it for others of its clients too.
    let mayShare: Bool
    /// Whether its client has not ended it.
    var isWanted = true {
        didSet { if !isWanted { stake = nil } }
    }
    /// It counts for its client's connection as long as it has this, whoever owns its actor.
    var stake: (any HeldPlace)?

    /// - Parameters:
    ///   - epoch: the life in which the client has seen something of it; empty when it has seen nothing.
    ///   - sequence: what it has seen last.
    ///   - mayShare: what comes through a filter is its client's alone all the same.
    init(
        callID: [UInt8], actor: String, target: String, filter: StreamFilter?, epoch: String = "", sequence: UInt64 = 0,
        mayShare: Bool = false, stake: (any HeldPlace)? = nil
    ) {
        (self.epoch, self.sequence) = (epoch, sequence)
        self.mayShare = mayShare && filter == nil
        self.stake = stake
        self.callID = callID
        self.actor = actor
        self.target = target
        self.filter = filter
        slot = ClusterSlot(of: actor)
    }

    /// One that began at this node.
    convenience init(
        _ placed: PlacedStream, streamID: [UInt8], epoch: String, sequence: UInt64, mayShare: Bool,
        _ stake: any HeldPlace
    ) {
        self.init(
            callID: placed.callID, actor: placed.actor, target: placed.target, filter: placed.filter, epoch: epoch,
            sequence: sequence, mayShare: mayShare, stake: stake)
        self.streamID = streamID
    }

    /// - Parameter position: what the owner says that the client has: in a life that it knows that is where the stream is by now, and
    ///   what the client lacks comes yet.
    func begin(as streamID: [UInt8], epoch: String, position: UInt64?) {
        self.streamID = streamID
        if !epoch.utf8.elementsEqual(self.epoch.utf8) { sequence = position ?? 0 }
        self.epoch = epoch
    }

    /// The message that takes it up.
    func resumption(as callID: [UInt8]) -> [UInt8] {
        var buffer = ByteBuffer()
        EnvelopeWriter.streamResume(
            streamID: String(decoding: streamID, as: UTF8.self), callID: String(decoding: callID, as: UTF8.self),
            actorID: actor, target: target, epoch: epoch, lastSequence: sequence, filter: filter, into: &buffer)
        return Array(buffer.bytes)
    }
}

/// A stream of an actor of this node's that may move to another one: what it takes to go on there.
struct PlacedStream {
    let callID: [UInt8]
    let actor: String
    let target: String
    let filter: StreamFilter?
    /// Looked at for each slot that goes to another node.
    let slot: ClusterSlot

    init(callID: [UInt8], actor: String, target: String, filter: StreamFilter?) {
        (self.callID, self.actor, self.target, self.filter) = (callID, actor, target, filter)
        slot = ClusterSlot(of: actor)
    }
}

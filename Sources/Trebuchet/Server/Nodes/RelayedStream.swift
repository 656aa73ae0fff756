internal import Bytes
internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire

/// A stream of an actor of another node's, and how far its client is.
final class RelayedStream {
    /// Under which the client has begun it.
    let callID: [UInt8]
    let slot: ClusterSlot
    private let actor: String
    private let target: String
    private let filter: [UInt8]?
    private(set) var streamID: [UInt8] = []
    private var epoch = ""
    var sequence: UInt64 = 0
    /// Nil while it is not known who owns its actor.
    var line: OwnerLine?

    init(callID: [UInt8], actor: String, target: String, filter: [UInt8]?) {
        self.callID = callID
        self.actor = actor
        self.target = target
        self.filter = filter
        slot = ClusterSlot(of: actor)
    }

    /// One that began at this node.
    convenience init(_ placed: PlacedStream, streamID: [UInt8], epoch: String, sequence: UInt64) {
        self.init(callID: placed.callID, actor: placed.actor, target: placed.target, filter: placed.filter)
        (self.streamID, self.epoch, self.sequence) = (streamID, epoch, sequence)
    }

    func begin(as streamID: [UInt8], epoch: String, position: UInt64?, over line: OwnerLine) {
        self.streamID = streamID
        if !epoch.utf8.elementsEqual(self.epoch.utf8) { sequence = position ?? 0 }
        self.epoch = epoch
        self.line = line
    }

    /// The message that takes it up.
    var resumption: [UInt8] {
        var buffer = ByteBuffer()
        let filter = filter.flatMap { bytes in bytes.withUnsafeBytes { try? StreamFilter($0) } }
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
    let filter: [UInt8]?
}

extension Message {
    /// What a stream asks for, as it came; nil for all.
    var filterBytes: [UInt8]? {
        envelope.pointee.filter.isAbsent ? nil : Array(bytes(envelope.pointee.filter))
    }
}

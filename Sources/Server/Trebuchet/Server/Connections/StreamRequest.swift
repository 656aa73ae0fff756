internal import TrebuchetActors

/// A request to start a stream.
package struct StreamRequest: Sendable {
    let name: RequestedStream
    let streamID: [UInt8]
    let callID: [UInt8]
    let filter: StreamFilter?
    /// The client's version of a stream that it resumes; nil for a new stream.
    let seen: ResumePosition?
    /// Its reservation, until it has started.
    let reservation: StreamReservation
    /// Indicates whether only permission is requested: the client's server observes the stream for several clients.
    var mayShare = false
    /// Indicates whether the stream is new to its client, although its position is known.
    var isFirst = false
    /// The client's message, if it may have to go to another server after all.
    var message: OwnedMessage?

    /// Returns the stream as another server resumes it.
    func movable(in partition: Int) -> MovableStream {
        MovableStream(
            callID: callID, actor: name.actor.text, target: name.target, filter: filter, partition: partition)
    }

    /// Its key among the connection's calls while it waits. For a stream that its server resumes, it is a key that no client can
    /// use.
    var key: [UInt8] { name.knownAs.map(Self.key) ?? callID }

    /// Returns the key of a stream that its server resumes.
    static func key(of knownAs: [UInt8]) -> [UInt8] { [0] + knownAs }

    /// A version of a stream that its client has received.
    package struct ResumePosition: Sendable {
        package let epoch: String
        package let sequence: UInt64

        package init(epoch: String, sequence: UInt64) { (self.epoch, self.sequence) = (epoch, sequence) }
    }
}

extension StreamRequest {
    /// Creates a request for a shared stream, which the owner of its actor has permitted.
    package init(
        shared name: RequestedStream, streamID: [UInt8], callID: [UInt8], seen: ResumePosition,
        reservation: StreamReservation, isFirst: Bool
    ) {
        self.init(
            name: name, streamID: streamID, callID: callID, filter: nil, seen: seen, reservation: reservation,
            isFirst: isFirst)
    }
}

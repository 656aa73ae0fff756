internal import TrebuchetActors

/// A request to start a stream.
struct StreamRequest: Sendable {
    let name: RequestedStream
    let streamID: [UInt8]
    let callID: [UInt8]
    let filter: StreamFilter?
    /// The client's version of a stream that it resumes; nil for a new stream.
    let seen: ResumePosition?
    /// Its reservation, until it has started.
    let reservation: StreamReservation
    /// Indicates whether only permission is requested: the client's node observes the stream for several clients.
    var mayShare = false
    /// Indicates whether the stream is new to its client, although its position is known.
    var isFirst = false
    /// The client's message, if it may have to go to another node after all.
    var message: OwnedMessage?

    /// The stream as another node resumes it.
    var clusteredStream: ClusteredStream {
        ClusteredStream(callID: callID, actor: name.actor.text, target: name.target, filter: filter)
    }

    /// Its key among the connection's calls while it waits. For a stream that its node resumes, it is a key that no client can use.
    var key: [UInt8] { name.knownAs.map(Self.key) ?? callID }

    /// Returns the key of a stream that its node resumes.
    static func key(of knownAs: [UInt8]) -> [UInt8] { [0] + knownAs }

    struct ResumePosition: Sendable {
        let epoch: String
        let sequence: UInt64
    }
}

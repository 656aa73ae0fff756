internal import TrebuchetActors

/// A stream that is to begin.
struct StreamRequest: Sendable {
    let name: AskedStream
    let streamID: [UInt8]
    let callID: [UInt8]
    let filter: StreamFilter?
    /// What the client has of it already; nil when it begins it.
    let seen: Seen?
    /// Its place in the shares, until it has begun.
    let stake: StreamStake
    /// Whether it is only to be said that it may begin: the client's node takes it for several.
    var mayShare = false
    /// Whether its client begins it, though what it begins behind is known.
    var isFirst = false
    /// What its client has sent, where it may have to go to another node after all.
    var message: KeptMessage?

    /// What another node takes it up by.
    var placed: PlacedStream {
        PlacedStream(callID: callID, actor: name.actor.text, target: name.target, filter: filter)
    }

    /// What it is called among the connection's calls while it waits: no client can use such a name.
    var key: [UInt8] { name.knownAs.map(Self.key) ?? callID }

    /// Of one that its node takes up by itself.
    static func key(of knownAs: [UInt8]) -> [UInt8] { [0] + knownAs }

    struct Seen: Sendable {
        let epoch: String
        let sequence: UInt64
    }
}

internal import Bytes
internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire

/// A call that was sent to another node, or is to be.
final class RelayedCall {
    let actor: String
    let slot: ClusterSlot
    /// The client's own.
    let callID: [UInt8]
    /// Which of its connection's it is.
    let order: UInt64
    /// What the client numbers it, where its answer is kept.
    let number: UInt64?
    private let message: KeptMessage
    let isRepeatable: Bool
    private var isRepeat = false
    private weak var user: (any OwnerLineUser)?
    /// The one that it was sent over; nil while it waits to be sent.
    var line: OwnerLine?
    /// Set as long as its message has not left this node's memory.
    private(set) weak var departure: Departure?
    /// Which of the messages it was there.
    var place: UInt64 = 0
    /// Set for the beginning of a stream.
    let stream: RelayedStream?

    /// - Parameter isRepeatable: whether its owner recognises it when it comes again.
    init(
        _ message: borrowing Message, callID: [UInt8], order: UInt64, isRepeatable: Bool, stream: RelayedStream?,
        of user: any OwnerLineUser
    ) {
        self.message = KeptMessage(message)
        self.callID = callID
        self.order = order
        self.isRepeatable = isRepeatable
        self.stream = stream
        self.user = user
        number = message.envelope.pointee.session.isAbsent ? nil : UInt64(String(decoding: callID, as: UTF8.self))
        actor = message.actorName
        slot = ClusterSlot(of: actor)
    }

    /// Whether its client goes on with a stream that it has.
    var isResumption: Bool { message.withMessage { $0.kind == .streamResume } }

    /// Whether it was sent before, by this node or by its client, so that nobody can say that it has not run.
    var mayHaveRun: Bool { isRepeat || message.withMessage { $0.kind == .repeat } }

    /// Whether it may be sent once more after it was sent: the beginning of a stream changes nothing, and what its owner recognises
    /// goes as a repeat.
    func goesAgain() -> Bool {
        guard stream == nil else { return true }
        isRepeat = true
        return isRepeatable
    }

    /// Its message goes from now on.
    func depart() -> Departure {
        let made = Departure()
        departure = made
        return made
    }

    func withMessage(_ body: (borrowing Message) -> Void) {
        message.withMessage { message in
            guard isRepeat, message.kind == .invocation else { return body(message) }
            message.withRepeat(body)
        }
    }

    /// The client does not want its answer any more.
    func cancel() { user?.cancelled(self) }
}

extension Message {
    /// Gives `body` the same call as one that was sent before.
    func withRepeat(_ body: (borrowing Message) -> Void) {
        var envelope = ScannedEnvelope()
        asRepeat.withUnsafeBytes { bytes in
            guard (try? envelope.scan(bytes)) != nil else { return }
            withUnsafePointer(to: envelope) { body(Message(bytes: bytes, envelope: $0)) }
        }
    }

    private var asRepeat: [UInt8] {
        var buffer = ByteBuffer()
        EnvelopeWriter.invocation(
            callID: text(envelope.pointee.callID), actorID: actorName, target: target,
            arguments: envelope.pointee.arguments.map { Array(bytes($0)) },
            genericSubstitutions: envelope.pointee.genericSubstitutions.map { text($0) },
            timeoutMilliseconds: envelope.pointee.timeoutMilliseconds,
            session: envelope.pointee.session.isAbsent ? nil : text(envelope.pointee.session),
            traceparent: trace?.traceparent, isRepeat: true, into: &buffer)
        return Array(buffer.bytes)
    }
}

/// What is wrong when an actor has gone to another node while something waited for it here: nothing was begun.
enum ActorMoved {
    /// Returns true for an error of an activation that was given up before the change of a call was acknowledged.
    static func mayHaveBegun(_ error: any Error) -> Bool { (error as? TrebuchetError)?.isOfLostActivation == true }

    static var error: TrebuchetError { .moved("the actor has just moved to another node; try again") }

    static func isIt(_ error: any Error) -> Bool { (error as? TrebuchetError)?.isOfMovedActor == true }
}

/// What becomes of a call that comes as if for the first time, and that an owner before has begun all the same: the log is asked what it
/// was answered. A type of its own, as no error that a method throws, or that comes from a peer, may be taken for it.
struct BegunEarlier: Error {}

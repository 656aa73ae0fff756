internal import Networking
internal import Platform
internal import Synchronization
internal import Transports

/// A call that was not answered at once: one that waits for its actor, runs in a task, or on another reactor.
///
/// `@unchecked Sendable`: what can change is touched on the connection's reactor alone, `crossing`, `home`, `run` and `kept` are set
/// before the call goes to another one; the rest is constant.
final class RunningCall: CallUnderWay, @unchecked Sendable {
    let callID: [UInt8]
    /// By the clock of its connection's reactor, in nanoseconds.
    let deadline: UInt64
    /// By the monotonic clock.
    let began: UInt64
    /// Where its time is counted; nil for what is no call of a method.
    var row: Int?
    /// Set while somebody listens. What outlives the connection has it too, but is not told of a second time.
    var told: ToldCall?
    /// How far that is ahead of the monotonic clock.
    private let timeAhead: UInt64
    /// By the monotonic clock.
    var machineDeadline: UInt64 { deadline &- timeAhead }
    /// Of the message, which are held as long as the call is under way.
    let byteCount: Int
    var timer: LoopTimer?
    private(set) var isAnswered = false
    /// Whether something runs on its behalf that does not end with its answer, and says when it has ended.
    var isAtWork = false
    /// Whether the connection's table does not have it, as it has another one of its name.
    var isUnlisted = false
    /// Whether it was answered while that ran: it counts until that has ended.
    var isOutlived = false
    /// What its client has sent, where its actor may go to another node before it is begun. Nobody holds it longer than the client waits.
    var message: KeptMessage?
    /// The call of an `@Idempotent` method that this one waits for; it outlives the connection.
    var run: RunningCall?
    /// Whether it runs in place on another reactor, and so ends soon.
    var isInTransit = false
    /// In which it does. Set before it goes there.
    var crossing: CrossingCalls?
    /// Set for a call that is noted in the store, if its actor keeps anything there. Before it goes to its reactor.
    var kept: KeptCall?
    /// Where its actor lives; nil for one that lives on no reactor, and until the actor has been made. Set before it goes there.
    var home: SystemShard?
    /// Set for a `repeat`: where its actor lives, as far as that is known.
    var repeated: RepeatedCall?
    /// Set for a stream that waits to begin.
    var stream: AskedStream?
    /// Set for one that goes to another node.
    var relayed: RelayedCall?
    var streamedActor: ActorName? { stream?.actor }
    /// The place where it waits for its actor.
    var waiter: ActorWaiter?
    /// Set for a stream that its node takes up by itself: it does so at another one.
    var goesElsewhere: (() -> Void)?
    /// Its answer, when that waits for streams.
    var answer: AnswerBehindStreams?
    /// Called when it is cancelled while it waits there: nothing else would end it.
    var didStopWaiting: (() -> Void)?
    /// Of the rules and the caller under which it was permitted, where it may have to be asked for again.
    var permission: KeptGrants.Basis?
    private let task = Mutex(TaskState())

    /// - Parameter earlier: the call that it was before: it ends when that would have ended.
    init(
        callID: [UInt8], after limit: Duration, on reactor: Reactor, byteCount: Int,
        continuing earlier: RunningCall? = nil
    ) {
        timeAhead = earlier?.timeAhead ?? reactor.timeAhead
        began = earlier?.began ?? MonotonicClock.now
        deadline = earlier?.deadline ?? began &+ timeAhead &+ limit.nanoseconds
        self.callID = callID
        self.byteCount = byteCount
    }

    /// One that has stood in line.
    init(_ call: borrowing QueuedCall, on reactor: Reactor) {
        timeAhead = reactor.timeAhead
        deadline = call.deadline &+ timeAhead
        began = call.deadline &- call.limit.nanoseconds
        callID = call.callID
        byteCount = call.bytes
    }

    /// What a call runs that outlives its connection: until the same moment.
    init(of call: RunningCall) {
        callID = call.callID
        (deadline, timeAhead, began) = (call.deadline, call.timeAhead, call.began)
        told = call.told
        byteCount = 0
    }

    /// What a call has been repeated of.
    struct RepeatedCall {
        let actor: ActorName
        /// Nil for an actor that is not there, or lives on no reactor.
        let home: SystemShard?
    }

    func run(in task: Task<Void, Never>) { self.task.fill(task) }

    /// Whether nobody waits for it any more. From anywhere.
    var isCancelled: Bool { task.isCancelled }

    /// Notes that it has its answer; false when it had one.
    func end() -> Bool {
        guard !isAnswered else { return false }
        isAnswered = true
        timer?.cancel()
        stopWaiting()
        (didStopWaiting, goesElsewhere, message) = (nil, nil, nil)
        return true
    }

    /// On the connection's reactor.
    func cancel() {
        timer?.cancel()
        relayed?.cancel()
        stopWaiting()
        if let run {
            let waited = run.waiter != nil
            run.stopWaiting()
            if waited { run.didStopWaiting?() }
            run.task.cancel()
        }
        task.cancel()
    }

    /// Nobody is there any more whom it could be answered.
    func abandon() {
        timer?.cancel()
        stopWaiting()
        (relayed, message) = (nil, nil)
        if run == nil { task.cancel() }
    }

    private func stopWaiting() {
        waiter?.leave()
        waiter = nil
    }
}

/// Which stream it is that is to begin.
struct AskedStream: Sendable {
    let actor: ActorName
    /// `observeState`
    let target: String
    /// What a client calls it that took it up again and has no `callID` for it.
    let resumed: [UInt8]?
    /// The same for one that its node takes up by itself, under the callID of before.
    var knownAs: [UInt8]?
}

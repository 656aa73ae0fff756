internal import Networking
internal import Synchronization

/// The answers of `@Idempotent` calls that a server keeps, for all its reactors.
final class RememberedAnswers: Sendable {
    typealias Memory = AnswerMemory<WaitingCall>

    let names: SessionNames
    /// How long an answer is kept.
    let time: Duration
    private let memory: Mutex<Memory>

    init(reactors: Int, limits: ServerLimits) {
        names = SessionNames(reactors: reactors)
        time = limits.answerTime
        memory = Mutex(
            Memory(
                Memory.Limits(
                    answers: limits.answers, answersPerSession: limits.answersPerConnection, bytes: limits.answerBytes,
                    time: limits.answerTime.nanoseconds)))
    }

    func begin(_ name: Memory.Name, _ request: Memory.Request, _ call: WaitingCall) -> Memory.Outcome? {
        memory.withLock { $0.begin(name, request, call, at: MonotonicClock.now) }
    }

    func join(_ name: Memory.Name, _ request: Memory.Request, _ call: WaitingCall) -> Memory.Outcome? {
        memory.withLock { $0.join(name, request, call, at: MonotonicClock.now) }
    }

    func end(_ name: Memory.Name, _ answer: Memory.Answer) -> [WaitingCall] {
        memory.withLock { $0.end(name, answer, at: MonotonicClock.now) }
    }

    func close(_ session: SessionName) { memory.withLock { $0.close(session) } }

    /// Returns whether there is anything left.
    func forget() -> Bool {
        memory.withLock { memory in
            memory.forget(at: MonotonicClock.now)
            return memory.count > 0
        }
    }

    var count: Int { memory.withLock { $0.count } }
}

/// A call over a connection that waits for the answer of an `@Idempotent` method.
struct WaitingCall: Sendable {
    let session: Session
    let call: RunningCall
}

/// What `@Idempotent` calls were answered, for clients that ask again. Pure: the time comes with each input, in nanoseconds
/// of the monotonic clock.
///
/// A call is named by the connection over which it was sent first and by its number there. It is forgotten some time after
/// it was answered, and then known by its number alone: one that is not greater than the greatest forgotten may have
/// run. In the same way connections that have ended are known by theirs. So memory is bounded, and no call runs twice.
struct AnswerMemory<Call> {
    struct Limits {
        var answers: Int
        var answersPerSession: Int
        var bytes: Int
        /// Nanoseconds for which an answer is kept.
        var time: UInt64
    }

    /// The result in JSON, empty for a method without one.
    typealias Answer = Result<[UInt8], TrebuchetError>

    struct Name: Hashable {
        let session: SessionName
        let number: UInt64
    }

    /// What a call asks for, to tell a repeat from another call under the same name.
    struct Request {
        let digest: Int
        let principal: String?
        /// Over another connection than the one that it was sent over first; which has ended.
        let isRepeat: Bool
    }

    /// What becomes of a call that does not run.
    enum Outcome {
        /// The same call runs already, on behalf of this one; who came later is told, too.
        case waits(Call)
        case answered(Answer)
        case refused(TrebuchetError)
    }

    private struct Session {
        let principal: String?
        var isOpen: Bool
        var entries: [UInt64: Entry] = [:]
        /// Calls up to this number may have run, and been forgotten.
        var forgotten: UInt64 = 0
    }

    private struct Entry {
        let digest: Int
        var state: State
        var bytes = entryBytes
    }

    private enum State {
        /// The first of the calls is the one that runs.
        case runs([Call])
        case answered(Answer)
    }

    /// What an entry costs beside its answer, roughly.
    private static var entryBytes: Int { 256 }

    private let limits: Limits
    private var sessions: [SessionName: Session] = [:]
    /// Sessions up to this number may have been forgotten.
    private var forgottenSession: UInt64 = 0
    /// Answered calls in the order of their answers, those before `firstExpiry` forgotten.
    private var expiries: [(name: Name, time: UInt64)] = []
    private var firstExpiry = 0
    private(set) var count = 0
    private(set) var bytes = 0

    init(_ limits: Limits) { self.limits = limits }

    var sessionCount: Int { sessions.count }

    // MARK: Calls

    /// A call has come. Nil when it is to run; `end` must be told of its answer.
    mutating func begin(_ name: Name, _ request: Request, _ call: Call, at now: UInt64) -> Outcome? {
        if let outcome = join(name, request, call, at: now) { return outcome }
        guard count < limits.answers, bytes < limits.bytes else {
            return .refused(TrebuchetError(.rateLimited, "the server keeps as many answers as it may; try again later"))
        }
        var session = sessions[name.session] ?? Session(principal: request.principal, isOpen: !request.isRepeat)
        guard session.entries.count < limits.answersPerSession else {
            let text =
                "the server keeps \(limits.answersPerSession) answers of this connection already; try again later"
            return .refused(TrebuchetError(.rateLimited, text))
        }
        session.entries[name.number] = Entry(digest: request.digest, state: .runs([call]))
        sessions[name.session] = session
        count += 1
        bytes += Self.entryBytes
        return nil
    }

    /// The same for a call that is not to run. Nil when it has never begun.
    mutating func join(_ name: Name, _ request: Request, _ call: Call, at now: UInt64) -> Outcome? {
        forget(at: now)
        guard let session = sessions[name.session] else {
            return request.isRepeat && name.session.number <= forgottenSession ? .refused(Self.forgotten) : nil
        }
        guard session.principal == request.principal else { return .refused(Self.forgotten) }
        guard let entry = session.entries[name.number] else {
            return name.number <= session.forgotten ? .refused(Self.forgotten) : nil
        }
        guard entry.digest == request.digest else {
            let text = "call \(name.number) of this session was another one: other target or arguments"
            return .refused(TrebuchetError(.invalidArguments, text))
        }
        switch entry.state {
        case .answered(let answer): return .answered(answer)
        case .runs(let calls):
            sessions[name.session]?.entries[name.number]?.state = .runs(calls + [call])
            return .waits(calls[0])
        }
    }

    /// A call has its answer. Returns who waits for it.
    mutating func end(_ name: Name, _ answer: Answer, at now: UInt64) -> [Call] {
        guard case .runs(let calls)? = sessions[name.session]?.entries[name.number]?.state else { return [] }
        var kept = answer
        var size = Self.size(answer)
        if bytes + size > limits.bytes {
            kept = .failure(TrebuchetError(.unknownOutcome, "it has run; its answer was too large to be kept"))
            size = 0
        }
        sessions[name.session]?.entries[name.number]?.state = .answered(kept)
        sessions[name.session]?.entries[name.number]?.bytes += size
        bytes += size
        expiries.append((name, now &+ limits.time))
        return calls
    }

    private static var forgotten: TrebuchetError {
        TrebuchetError(.unknownOutcome, "the server does not know any more whether it has run")
    }

    private static func size(_ answer: Answer) -> Int {
        switch answer {
        case .success(let bytes): bytes.count
        case .failure(let error): error.message.utf8.count + (error.type?.utf8.count ?? 0) + (error.data?.count ?? 0)
        }
    }

    // MARK: Forgetting

    /// A connection has ended. Its calls are remembered as long as those of others.
    mutating func close(_ name: SessionName) {
        sessions[name]?.isOpen = false
        dropIfEmpty(name)
    }

    /// Forgets what has been kept for its time.
    mutating func forget(at now: UInt64) {
        while firstExpiry < expiries.count, expiries[firstExpiry].time <= now {
            let name = expiries[firstExpiry].name
            firstExpiry += 1
            guard let entry = sessions[name.session]?.entries.removeValue(forKey: name.number) else { continue }
            count -= 1
            bytes -= entry.bytes
            let forgotten = sessions[name.session]?.forgotten ?? 0
            sessions[name.session]?.forgotten = max(forgotten, name.number)
            dropIfEmpty(name.session)
        }
        // Half of it at a time, so that each is moved once on average.
        if firstExpiry * 2 > expiries.count {
            expiries.removeFirst(firstExpiry)
            firstExpiry = 0
        }
    }

    private mutating func dropIfEmpty(_ name: SessionName) {
        guard let session = sessions[name], !session.isOpen, session.entries.isEmpty else { return }
        sessions[name] = nil
        forgottenSession = max(forgottenSession, name.number)
    }
}

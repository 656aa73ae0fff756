internal import Platform
internal import TrebuchetActors
internal import WebSockets

/// What `@Idempotent` calls were answered, for clients that ask again, over the connections of one reactor. Pure: the time
/// comes with each input, in nanoseconds of the monotonic clock.
///
/// A call is named by the connection over which it was sent first and by its number there. It is forgotten some time after
/// it was answered, and then known by its number alone: one that is not greater than the greatest forgotten may have
/// run. In the same way connections that have ended are known by theirs. So memory is bounded, and no call runs twice.
///
/// What a call costs does not depend on how much is kept: entries lie in objects and are changed in place, and what is too
/// old goes a little with each call.
struct AnswerMemory<Call> {
    struct Limits {
        var client: ConnectionLimits
        /// Of a server's own connections.
        var server: ConnectionLimits
        /// Nanoseconds for which an answer is kept.
        var time: UInt64
    }

    /// The result in JSON, empty for a method without one.
    typealias Answer = Result<[UInt8], TrebuchetError>

    struct Name {
        let connection: ConnectionName
        let number: UInt64
        /// Set for a connection of another node's.
        var carried: CarriedName?
    }

    /// What a call asks for, to tell a repeat from another call under the same name.
    struct Request {
        let digest: UInt64
        let principal: String?
        /// Over another connection than the one that it was sent over first; which has ended.
        let isRepeat: Bool
        /// Where it comes from; nil for this machine itself.
        var host: AddressKey?
        /// Whether a server asks for its actors.
        var isOfServer = false

        fileprivate var author: PrincipalName? { principal.map { PrincipalName($0) } }
        /// Who asks.
        var party: Party { author.map { .principal($0) } ?? host.map { .host($0.number) } ?? .server }
    }

    /// What becomes of a call that does not run.
    enum Outcome {
        /// The same call runs already, on behalf of `first`; who came later is told, too, in place of `dropped`, where too many wait.
        case waits(first: Call, dropped: Call?)
        case answered(Answer)
        case refused(TrebuchetError)
        /// Of its connection calls up to some number are forgotten, and it may be one of them: what else is known of it says more.
        case forgotten
    }

    /// Who has made calls over a connection: somebody else may sign in.
    private final class Author {
        let principal: PrincipalName?
        let holding: AnswerHolding
        let party: Party
        let isServer: Bool

        init(_ request: Request, _ shares: AnswerShares) {
            principal = request.author
            party = request.party
            isServer = request.isOfServer
            holding = AnswerHolding(shares, principal: request.principal, host: request.host)
        }
    }

    /// What is kept of one connection.
    private final class ConnectionAnswers {
        let name: ConnectionName
        /// It is found by what it is called at its own node as long as anything is kept of it.
        let carried: CarriedName?
        /// Of the newest call.
        var author: Author
        var isOpen: Bool
        var entries: [UInt64: Entry] = [:]
        var bytes = 0
        /// Calls up to this number may have run, and been forgotten.
        var forgotten: UInt64 = 0
        var hasForgotten = false

        init(_ name: Name, _ request: Request, _ shares: AnswerShares) {
            self.name = name.connection
            carried = name.carried
            author = Author(request, shares)
            isOpen = !request.isRepeat
        }
    }

    private struct Entry {
        let digest: UInt64
        let author: Author
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

    /// Old answers that go with each call, so that none has to wait while many go.
    private static var forgottenAtOnce: Int { 16 }

    private let limits: Limits
    private let shares: AnswerShares
    private var connections: [ConnectionName: ConnectionAnswers] = [:]
    /// Connections up to this number may have been forgotten.
    private var forgottenNumber: UInt64 = 0
    /// Answered calls in the order of their answers, those before `firstExpiry` forgotten.
    private var expiries: [(connection: ConnectionAnswers, number: UInt64, time: UInt64)] = []
    private var firstExpiry = 0
    private(set) var count = 0
    private(set) var bytes = 0

    init(_ limits: Limits, _ shares: AnswerShares) {
        self.limits = limits
        self.shares = shares
    }

    var connectionCount: Int { connections.count }

    // MARK: Calls

    /// A call has come. Nil when it is to run; `end` must be told of its answer.
    mutating func begin(_ name: Name, _ request: Request, _ call: Call, at now: UInt64) -> Outcome? {
        if let outcome = join(name, request, call, at: now) { return outcome }
        let connection = connections[name.connection] ?? ConnectionAnswers(name, request, shares)
        if connection.author.principal != request.author { connection.author = Author(request, shares) }
        if let full = take(for: connection) { return .refused(full) }
        connection.entries[name.number] = Entry(
            digest: request.digest, author: connection.author, state: .runs([call]))
        connections[name.connection] = connection
        connection.bytes += Self.entryBytes
        count += 1
        bytes += Self.entryBytes
        return nil
    }

    private func most(of author: Author) -> ConnectionLimits { author.isServer ? limits.server : limits.client }

    /// Counts one more answer for all whose share it is of; else the error that names the limit.
    private func take(for connection: ConnectionAnswers) -> TrebuchetError? {
        func full(_ what: String, _ limit: String) -> TrebuchetError {
            TrebuchetError(
                .rateLimited,
                "the server keeps as many answers of @Idempotent calls \(what) as it may (ServerLimits.\(limit)); try again "
                    + "later")
        }
        let most = most(of: connection.author)
        if connection.entries.count >= most.answers {
            return full("of this connection", "answersPerConnection: \(most.answers)")
        }
        if connection.bytes + Self.entryBytes > most.answerBytes {
            return full("of this connection", "answerBytesPerConnection: \(most.answerBytes)")
        }
        return connection.author.holding.take(bytes: Self.entryBytes).map { full($0.whose, $0.setting) }
    }

    /// The same for a call that is not to run. Nil when it has never begun.
    mutating func join(_ name: Name, _ request: Request, _ call: Call, at now: UInt64) -> Outcome? {
        forget(at: now, atMost: Self.forgottenAtOnce)
        guard let connection = connections[name.connection] else {
            // What a connection of another node's is called here says nothing of when it began.
            let mayHaveBeen = request.isRepeat && name.carried == nil && name.connection.number <= forgottenNumber
            return mayHaveBeen ? .forgotten : nil
        }
        guard let entry = connection.entries[name.number] else {
            // Whoever is signed in now may call; who asks for another connection's call must be who had that.
            let isOther = request.isRepeat && connection.author.principal != request.author
            if isOther { return .refused(Self.forgotten) }
            return name.number <= connection.forgotten ? .forgotten : nil
        }
        // Nobody gets what was an answer for somebody else.
        guard entry.author.principal == request.author else { return .refused(Self.forgotten) }
        guard entry.digest == request.digest else {
            let text = "call \(name.number) of that connection was another one: other target or arguments"
            return .refused(TrebuchetError(.invalidArguments, text))
        }
        switch entry.state {
        case .answered(let answer): return .answered(answer)
        case .runs(var calls):
            // A client has one connection at a time, the newest: the oldest repeat has most likely lost its own. The first call runs.
            let dropped = calls.count < Self.mostWaiting ? nil : calls.remove(at: 1)
            calls.append(call)
            connection.entries[name.number]?.state = .runs(calls)
            return .waits(first: calls[0], dropped: dropped)
        }
    }

    /// A call has its answer. Returns who waits for it.
    mutating func end(_ name: Name, _ answer: Answer, at now: UInt64) -> [Call] {
        guard let connection = connections[name.connection], let entry = connection.entries[name.number],
            case .runs(let calls) = entry.state
        else { return [] }
        var kept = answer
        var size = Self.size(answer)
        let most = most(of: entry.author).answerBytes
        let full =
            connection.bytes + size > most
            ? AnswerHolding.Full("of this connection", "answerBytesPerConnection", most)
            : entry.author.holding.takeBytes(size)
        if let full {
            let text = "the call has run, and its answer was too large to be kept (ServerLimits.\(full.setting))"
            kept = .failure(TrebuchetError(.unknownOutcome, text))
            size = 0
        }
        connection.entries[name.number]?.state = .answered(kept)
        connection.entries[name.number]?.bytes += size
        connection.bytes += size
        bytes += size
        expiries.append((connection, name.number, now &+ limits.time))
        return calls
    }

    /// A call that was answered at its deadline has a result after all, which takes the place of the error where there is room.
    mutating func amend(_ name: Name, _ answer: Answer) {
        guard let connection = connections[name.connection], let entry = connection.entries[name.number],
            case .answered(.failure) = entry.state
        else { return }
        let more = max(0, Self.entryBytes + Self.size(answer) - entry.bytes)
        guard connection.bytes + more <= most(of: entry.author).answerBytes,
            more == 0 || entry.author.holding.takeBytes(more) == nil
        else { return }
        connection.entries[name.number]?.state = .answered(answer)
        connection.entries[name.number]?.bytes += more
        connection.bytes += more
        bytes += more
    }

    /// A call was not begun, and is forgotten. Returns who waits for it.
    mutating func withdraw(_ name: Name) -> [Call] {
        guard let connection = connections[name.connection], let entry = connection.entries[name.number],
            case .runs(let calls) = entry.state
        else { return [] }
        connection.entries[name.number] = nil
        connection.bytes -= entry.bytes
        count -= 1
        bytes -= entry.bytes
        entry.author.holding.release(bytes: entry.bytes)
        dropIfEmpty(connection)
        return calls
    }

    /// Calls that may wait for one answer, the first among them.
    private static var mostWaiting: Int { 16 }

    /// For a repeat that waits no more.
    static var dropped: TrebuchetError {
        TrebuchetError(.rateLimited, "\(mostWaiting) later repeats of this call wait for its answer; try again later")
    }

    static var forgotten: TrebuchetError {
        TrebuchetError(
            .unknownOutcome,
            "the call was sent over an earlier connection, and what became of it is forgotten after ServerLimits.answerTime: look at "
                + "what it would have changed, and call again if it has not")
    }

    private static func size(_ answer: Answer) -> Int {
        switch answer {
        case .success(let bytes): bytes.count
        case .failure(let error): error.message.utf8.count + (error.type?.utf8.count ?? 0) + (error.data?.count ?? 0)
        }
    }

    // MARK: Forgetting

    /// A connection has ended. Its calls are remembered as long as those of others.
    mutating func close(_ name: ConnectionName) {
        guard let connection = connections[name] else { return }
        connection.isOpen = false
        dropIfEmpty(connection)
    }

    /// A connection of another node's is carried on over another line. Whether anything is kept of it.
    mutating func reopen(_ name: ConnectionName) -> Bool {
        connections[name]?.isOpen = true
        return connections[name] != nil
    }

    /// Forgets what has been kept for its time, some of it if there is much. Returns the time after which there is more
    /// to forget, in nanoseconds; nil when there is nothing.
    @discardableResult
    mutating func forget(at now: UInt64, atMost limit: Int = .max) -> UInt64? {
        var rest = limit
        while rest > 0, firstExpiry < expiries.count, expiries[firstExpiry].time <= now {
            let (connection, number, _) = expiries[firstExpiry]
            firstExpiry += 1
            rest -= 1
            guard let entry = connection.entries.removeValue(forKey: number) else { continue }
            count -= 1
            bytes -= entry.bytes
            connection.bytes -= entry.bytes
            entry.author.holding.release(bytes: entry.bytes)
            // Answers come in another order than calls.
            connection.forgotten = max(connection.forgotten, number)
            connection.hasForgotten = true
            dropIfEmpty(connection)
        }
        // Half of it at a time, so that each is moved once on average.
        if firstExpiry * 2 > expiries.count {
            expiries.removeFirst(firstExpiry)
            firstExpiry = 0
        }
        guard count > 0 else { return nil }
        guard firstExpiry < expiries.count else { return limits.time }
        let next = expiries[firstExpiry].time
        return next > now ? next - now : 0
    }

    private mutating func dropIfEmpty(_ connection: ConnectionAnswers) {
        guard !connection.isOpen, connection.entries.isEmpty else { return }
        connections[connection.name] = nil
        guard let carried = connection.carried else {
            forgottenNumber = max(forgottenNumber, connection.name.number)
            return
        }
        if connection.hasForgotten { carried.wasForgotten(upTo: connection.forgotten, of: connection.author.party) }
    }
}

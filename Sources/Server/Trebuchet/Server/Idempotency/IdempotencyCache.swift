internal import Platform
internal import TrebuchetActors
internal import WebSockets

/// The idempotency cache: responses of `@Idempotent` calls for clients that repeat them, for the connections of one reactor. A pure
/// value: each input has the time, in nanoseconds of the monotonic clock.
///
/// A call is identified by its first connection and its number there. Its entry expires some time after its response. Then only the
/// greatest expired number is known: a call without an entry that is not greater may have run. Ended connections are known by their
/// greatest number in the same way. So memory is bounded, and no call runs twice.
///
/// The cost of a call does not depend on the number of entries: entries are objects that change in place, and each call removes a
/// few expired ones.
struct IdempotencyCache<Call> {
    struct Limits {
        var client: ConnectionLimits
        /// The limits of the server's own connections.
        var server: ConnectionLimits
        /// The time in nanoseconds for which a response is kept.
        var time: UInt64
    }

    /// The result in JSON, empty for a method without one.
    typealias Response = Result<[UInt8], TrebuchetError>

    struct Name {
        let connection: CallSessionID
        let number: UInt64
        /// The name at the other server, for a connection of another server.
        var carried: RemoteSessionAlias?
    }

    /// The properties that distinguish a repeat from another call with the same name.
    struct Request {
        let digest: UInt64
        let principal: String?
        /// Indicates whether it arrived over another connection than the first one, which has ended.
        let isRepeat: Bool
        /// The network origin; nil for the local machine.
        var host: AddressKey?
        /// Indicates whether the caller is a server, on behalf of its actors.
        var isOfServer = false

        fileprivate var author: PrincipalName? { principal.map { PrincipalName($0) } }
        /// The quota scope of the caller: its principal, or its network, because a client may have all hosts of an IPv6 network.
        var scope: QuotaScope {
            if let author { return .principal(author) }
            guard let network = host?.network else { return .server }
            return network.isNetwork ? .network(network.number) : .host(network.number)
        }
        /// The quota scopes of the caller besides its connection.
        var scopes: QuotaScopes { QuotaScopes(connection: nil, principal: principal, host: host) }
    }

    /// The result of a call that does not run.
    enum Outcome {
        /// `first` is the running execution of this call; the new caller also receives its response. It replaces `dropped` if too
        /// many callers wait.
        case waits(first: Call, dropped: Call?)
        case answered(Response)
        case refused(TrebuchetError)
        /// A limit refuses to record it.
        case exceeded(QuotaExceeded)
        /// Calls of its connection have expired, and it may be one of them: other records take precedence.
        case forgotten
    }

    /// The principal of a connection's calls, which another sign-in changes.
    private final class Author {
        let principal: PrincipalName?
        /// The account in which its responses count besides the connection, which counts them itself.
        let account: QuotaAccount
        let scope: QuotaScope
        let isServer: Bool

        init(_ request: Request, _ quotas: QuotaLedger) {
            principal = request.author
            scope = request.scope
            isServer = request.isOfServer
            account = quotas.account(for: request.scopes)
        }

        func release(bytes: Int) {
            account.release(.recordedResponses)
            account.release(.recordedResponseBytes, bytes)
        }
    }

    /// The entries of one connection.
    private final class ConnectionResponses {
        let name: CallSessionID
        /// Keeps the connection's name at its own server known as long as there is an entry.
        let carried: RemoteSessionAlias?
        /// The author of the newest call.
        var author: Author
        var isOpen: Bool
        var entries: [UInt64: Entry] = [:]
        var bytes = 0
        /// Calls up to this number may have run and expired; nil if none has.
        var forgotten: UInt64?

        init(_ name: Name, _ request: Request, _ quotas: QuotaLedger) {
            self.name = name.connection
            carried = name.carried
            author = Author(request, quotas)
            isOpen = !request.isRepeat
        }

        func exceeded(_ resource: SharedResource, _ setting: String, _ limit: Int) -> QuotaExceeded {
            QuotaExceeded(
                resource: resource, scope: .connection(name.number), limit: QuotaLimit(limit, setting))
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
        case answered(Response)
    }

    /// The approximate cost of an entry without its response.
    private static var entryBytes: Int { 256 }

    /// The number of expired responses removed by each call, so that none is delayed by many.
    private static var evictionBatch: Int { 16 }

    private let limits: Limits
    private let quotas: QuotaLedger
    private var connections: [CallSessionID: ConnectionResponses] = [:]
    /// Connections up to this number may have been removed.
    private var forgottenNumber: UInt64 = 0
    /// Answered calls in the order of their responses; those before `firstExpiry` are removed.
    private var expiries: [(connection: ConnectionResponses, number: UInt64, time: UInt64)] = []
    private var firstExpiry = 0
    private(set) var count = 0
    private(set) var bytes = 0

    init(_ limits: Limits, _ quotas: QuotaLedger) {
        self.limits = limits
        self.quotas = quotas
    }

    var connectionCount: Int { connections.count }

    // MARK: Calls

    /// Records a call. Returns nil when it is to run; its response must be passed to `recordResponse`.
    mutating func recordCall(_ name: Name, _ request: Request, _ call: Call, at now: UInt64) -> Outcome? {
        if let outcome = join(name, request, call, at: now) { return outcome }
        let connection = connections[name.connection] ?? ConnectionResponses(name, request, quotas)
        if connection.author.principal != request.author { connection.author = Author(request, quotas) }
        do throws(QuotaExceeded) {
            try reserveResponse(for: connection)
        } catch {
            return .exceeded(error)
        }
        connection.entries[name.number] = Entry(
            digest: request.digest, author: connection.author, state: .runs([call]))
        connections[name.connection] = connection
        connection.bytes += Self.entryBytes
        count += 1
        bytes += Self.entryBytes
        return nil
    }

    private func most(of author: Author) -> ConnectionLimits { author.isServer ? limits.server : limits.client }

    /// Reserves one response in all quotas.
    private func reserveResponse(for connection: ConnectionResponses) throws(QuotaExceeded) {
        let most = most(of: connection.author)
        guard connection.entries.count < most.answers else {
            throw connection.exceeded(.recordedResponses, "idempotency.perConnection", most.answers)
        }
        guard connection.bytes + Self.entryBytes <= most.answerBytes else {
            throw connection.exceeded(
                .recordedResponseBytes, "idempotency.bytesPerConnection", most.answerBytes)
        }
        try connection.author.account.reserve(
            .recordedResponses, with: .recordedResponseBytes, Self.entryBytes)
    }

    /// Reserves bytes for the response of a recorded call.
    private func reserveBytes(
        _ count: Int, of connection: ConnectionResponses, _ author: Author
    ) throws(QuotaExceeded) {
        let most = most(of: author).answerBytes
        guard connection.bytes + count <= most else {
            throw connection.exceeded(.recordedResponseBytes, "idempotency.bytesPerConnection", most)
        }
        try author.account.reserve(.recordedResponseBytes, count)
    }

    /// Returns the outcome of a call that must not run; nil when it has never started.
    mutating func join(_ name: Name, _ request: Request, _ call: Call, at now: UInt64) -> Outcome? {
        removeExpired(at: now, atMost: Self.evictionBatch)
        guard let connection = connections[name.connection] else {
            // The local number of another server's connection says nothing about its start.
            let mayHaveBeen = request.isRepeat && name.carried == nil && name.connection.number <= forgottenNumber
            return mayHaveBeen ? .forgotten : nil
        }
        guard let entry = connection.entries[name.number] else {
            // A new call may come from any principal; a repeat must come from the connection's last principal.
            let isOther = request.isRepeat && connection.author.principal != request.author
            if isOther { return .refused(Self.forgotten) }
            return connection.forgotten.map { name.number <= $0 } == true ? .forgotten : nil
        }
        // A response is delivered only to the principal of the call.
        guard entry.author.principal == request.author else { return .refused(Self.forgotten) }
        guard entry.digest == request.digest else {
            let text = "call \(name.number) of the connection had another target or other arguments"
            return .refused(TrebuchetError(.invalidArguments, text))
        }
        switch entry.state {
        case .answered(let answer): return .answered(answer)
        case .runs(var calls):
            // A client has one connection at a time, the newest: the oldest repeat has most likely lost its connection. The first
            // call runs.
            let dropped = calls.count < Self.maximumQueuedCount ? nil : calls.remove(at: 1)
            calls.append(call)
            connection.entries[name.number]?.state = .runs(calls)
            return .waits(first: calls[0], dropped: dropped)
        }
    }

    /// Records the response of a call. Returns the waiting callers.
    mutating func recordResponse(_ name: Name, _ answer: Response, at now: UInt64) -> [Call] {
        guard let connection = connections[name.connection], let entry = connection.entries[name.number],
            case .runs(let calls) = entry.state
        else { return [] }
        var stored = answer
        var size = Self.size(answer)
        do throws(QuotaExceeded) {
            try reserveBytes(size, of: connection, entry.author)
        } catch {
            let text = "the call was executed, but its response was too large to record (\(error.setting))"
            stored = .failure(TrebuchetError(.unknownOutcome, text))
            size = 0
        }
        connection.entries[name.number]?.state = .answered(stored)
        connection.entries[name.number]?.bytes += size
        connection.bytes += size
        bytes += size
        expiries.append((connection, name.number, now &+ limits.time))
        return calls
    }

    /// Replaces the timeout error of a call by its late result, where there is room.
    mutating func replaceTimeout(_ name: Name, _ answer: Response) {
        guard let connection = connections[name.connection], let entry = connection.entries[name.number],
            case .answered(.failure) = entry.state
        else { return }
        let more = max(0, Self.entryBytes + Self.size(answer) - entry.bytes)
        guard (try? reserveBytes(more, of: connection, entry.author)) != nil else { return }
        connection.entries[name.number]?.state = .answered(answer)
        connection.entries[name.number]?.bytes += more
        connection.bytes += more
        bytes += more
    }

    /// Removes a call that has not started. Returns the waiting callers.
    mutating func withdraw(_ name: Name) -> [Call] {
        guard let connection = connections[name.connection], let entry = connection.entries[name.number],
            case .runs(let calls) = entry.state
        else { return [] }
        connection.entries[name.number] = nil
        connection.bytes -= entry.bytes
        count -= 1
        bytes -= entry.bytes
        entry.author.release(bytes: entry.bytes)
        dropIfEmpty(connection)
        return calls
    }

    /// The maximum number of calls that wait for one response, including the first.
    private static var maximumQueuedCount: Int { 16 }

    /// The error for a repeat that a later one has replaced.
    static var dropped: TrebuchetError {
        TrebuchetError(
            .rateLimited, "\(maximumQueuedCount) repeats of this call already wait for its response; retry later")
    }

    static var forgotten: TrebuchetError {
        TrebuchetError(
            .unknownOutcome,
            "the call was sent over an earlier connection, and its record expired after ServerLimits.idempotency.retention: check "
                + "its effects, and call again if it was not executed")
    }

    private static func size(_ answer: Response) -> Int {
        switch answer {
        case .success(let bytes): bytes.count
        case .failure(let error): error.message.utf8.count + (error.type?.utf8.count ?? 0) + (error.data?.count ?? 0)
        }
    }

    // MARK: Forgetting

    /// Records the end of a connection. The entries of its calls stay until they expire.
    mutating func close(_ name: CallSessionID) {
        guard let connection = connections[name] else { return }
        connection.isOpen = false
        dropIfEmpty(connection)
    }

    /// Records that another link continues a connection of another server. Returns whether it has entries.
    mutating func reopen(_ name: CallSessionID) -> Bool {
        connections[name]?.isOpen = true
        return connections[name] != nil
    }

    /// Removes expired entries, at most `limit`. Returns the time until the next one expires, in nanoseconds; nil when there is
    /// none.
    @discardableResult
    mutating func removeExpired(at now: UInt64, atMost limit: Int = .max) -> UInt64? {
        var rest = limit
        while rest > 0, firstExpiry < expiries.count, expiries[firstExpiry].time <= now {
            let (connection, number, _) = expiries[firstExpiry]
            firstExpiry += 1
            rest -= 1
            guard let entry = connection.entries.removeValue(forKey: number) else { continue }
            count -= 1
            bytes -= entry.bytes
            connection.bytes -= entry.bytes
            entry.author.release(bytes: entry.bytes)
            // The order of responses differs from that of calls.
            connection.forgotten = max(connection.forgotten ?? 0, number)
            dropIfEmpty(connection)
        }
        // Compacts when half of it has expired, so that each is moved once on average.
        if firstExpiry * 2 > expiries.count {
            expiries.removeFirst(firstExpiry)
            firstExpiry = 0
        }
        guard count > 0 else { return nil }
        guard firstExpiry < expiries.count else { return limits.time }
        let next = expiries[firstExpiry].time
        return next > now ? next - now : 0
    }

    private mutating func dropIfEmpty(_ connection: ConnectionResponses) {
        guard !connection.isOpen, connection.entries.isEmpty else { return }
        connections[connection.name] = nil
        // Otherwise all of its calls were withdrawn before they started.
        guard let forgotten = connection.forgotten else { return }
        if let carried = connection.carried {
            carried.wasForgotten(upTo: forgotten, of: connection.author.scope)
        } else {
            forgottenNumber = max(forgottenNumber, connection.name.number)
        }
    }
}

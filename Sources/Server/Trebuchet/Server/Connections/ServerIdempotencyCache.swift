internal import Bytes
internal import Platform
internal import Synchronization
internal import TrebuchetActors

/// The idempotency caches of a server: one for the connections of each reactor. Other reactors access a cache only for repeats, so
/// its lock is nearly always uncontended.
final class ServerIdempotencyCache: Sendable {
    typealias Memory = IdempotencyCache<DuplicateCallWaiter>

    private final class ReactorCache: Sendable {
        let memory: Mutex<Memory>

        init(_ limits: Memory.Limits, _ quotas: QuotaLedger) { memory = Mutex(Memory(limits, quotas)) }
    }

    /// The number of expired responses removed while the lock is held once.
    private static let evictionBatch = 1_000

    // Times are those of a reactor's clock; all reactors share one clock.
    let names: CallSessionRegistry
    /// The time for which a response is kept.
    let time: Duration
    private let caches: [ReactorCache]
    private let quotas: QuotaLedger

    init(reactors: Int, limits: ServerLimits, quotas: QuotaLedger) {
        names = CallSessionRegistry(reactors: reactors)
        time = limits.idempotency.retention
        self.quotas = quotas
        let each = Memory.Limits(
            client: limits.ofClient, server: limits.ofServer, time: limits.idempotency.retention.nanoseconds)
        caches = (0..<reactors).map { _ in ReactorCache(each, quotas) }
    }

    /// Returns the quota of the persisted responses of a session. It has the same limits as responses in memory.
    func persistedResponseQuota(of session: CallSessionID, _ request: Memory.Request) -> PersistedResponseQuota {
        PersistedResponseQuota(
            quotas.account(for: request.scopes, own: request.isOfServer ? nil : .connection(session.number)),
            of: request.principal)
    }

    private func cache(of connection: CallSessionID) -> ReactorCache { caches[names.reactor(of: connection)] }

    func recordCall(
        _ name: Memory.Name, _ request: Memory.Request, _ call: DuplicateCallWaiter, at now: UInt64
    ) -> Memory.Outcome? {
        cache(of: name.connection).memory.withLock { $0.recordCall(name, request, call, at: now) }
    }

    func join(
        _ name: Memory.Name, _ request: Memory.Request, _ call: DuplicateCallWaiter, at now: UInt64
    ) -> Memory.Outcome? {
        cache(of: name.connection).memory.withLock { $0.join(name, request, call, at: now) }
    }

    func recordResponse(_ name: Memory.Name, _ answer: Memory.Response, at now: UInt64) -> [DuplicateCallWaiter] {
        cache(of: name.connection).memory.withLock { $0.recordResponse(name, answer, at: now) }
    }

    func replaceTimeout(_ name: Memory.Name, _ answer: Memory.Response) {
        cache(of: name.connection).memory.withLock { $0.replaceTimeout(name, answer) }
    }

    func withdraw(_ name: Memory.Name) -> [DuplicateCallWaiter] {
        cache(of: name.connection).memory.withLock { $0.withdraw(name) }
    }

    func close(_ connection: CallSessionID) { cache(of: connection).memory.withLock { $0.close(connection) } }

    func reopen(_ connection: CallSessionID) -> Bool { cache(of: connection).memory.withLock { $0.reopen(connection) } }

    /// Removes expired responses, a limited number at a time. Returns the time until the next removal; nil when none is left.
    func removeExpired(at now: UInt64) -> Duration? {
        let waits = caches.compactMap { part in
            part.memory.withLock { $0.removeExpired(at: now, atMost: Self.evictionBatch) }
        }
        // Not at once, since waiting work comes first, and not for each response separately.
        return waits.min().map { max(.nanoseconds(Int64(clamping: $0)), min(time, .milliseconds(10))) }
    }

    var count: Int { caches.reduce(0) { $0 + $1.memory.withLock { $0.count } } }
}

/// A call of a connection that waits for the response of an `@Idempotent` method.
struct DuplicateCallWaiter: Sendable {
    let connection: ServerConnection
    let call: InFlightCall
    /// The execution, if the call was the first one.
    let execution: InFlightCall?

    /// Delivers the recorded response. May be called on any reactor.
    func deliver(_ response: ServerIdempotencyCache.Memory.Response) {
        let outcome: CallOutcome = response.map { _CallResult(encoded: $0) }.mapError { $0 }
        let reactor = connection.shard.reactor
        guard let repeated = call.repeated else {
            return reactor.run { connection.finish(call, outcome, behindStreamsOf: call.sharedExecution?.home) }
        }
        // The call's changes may not have reached this reactor, or not have left the actor's reactor: the response follows them.
        let here: @Sendable () -> Void = {
            connection.whenStreamsAreCurrent(for: call, .of(repeated.actor), outcome.bytesOfResult) {
                connection.finish(call, outcome)
            }
        }
        guard let home = repeated.home, home !== connection.shard.states else { return reactor.execute(here) }
        home.reactor.execute {
            home.whenPublished { reactor.execute(here) }
        }
    }
}

/// The quota of the persisted responses of one session, for the calls of one principal.
final class PersistedResponseQuota: RecordedResponseQuota {
    private let account: QuotaAccount
    private let principal: PrincipalName?

    init(_ account: QuotaAccount, of principal: String?) {
        (self.account, self.principal) = (account, principal.map { PrincipalName($0) })
    }

    /// Returns true if the responses of a request count here.
    func belongs(to request: ServerIdempotencyCache.Memory.Request) -> Bool {
        principal == request.principal.map { PrincipalName($0) }
    }

    func reserve(_ bytes: Int) -> Bool { (try? account.reserve(.persistedResponseBytes, bytes)) != nil }
    func release(_ bytes: Int) { account.release(.persistedResponseBytes, bytes) }
}

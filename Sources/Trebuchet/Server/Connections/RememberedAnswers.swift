internal import Bytes
internal import Platform
internal import Synchronization

/// The answers of `@Idempotent` calls that a server keeps: a memory for each of its reactors, of the connections that live
/// there. Others come to it with repeats alone, so its lock is nearly always free.
final class RememberedAnswers: Sendable {
    typealias Memory = AnswerMemory<WaitingCall>

    private final class Part: Sendable {
        let memory: Mutex<Memory>

        init(_ limits: Memory.Limits, _ shares: AnswerShares) { memory = Mutex(Memory(limits, shares)) }
    }

    /// Old answers that go while the lock is held once.
    private static let forgottenAtOnce = 1_000

    // Times are those of a reactor's clock, all of which show the same.
    let names: ConnectionNames
    /// How long an answer is kept.
    let time: Duration
    private let parts: [Part]
    /// Of those that a store keeps beside.
    private let storedShares: AnswerShares
    private let storedOfConnections: Shares<ConnectionName>

    init(reactors: Int, limits: ServerLimits, memory: MemoryBudget) {
        names = ConnectionNames(reactors: reactors)
        time = limits.answerTime
        let shares = AnswerShares(limits, within: memory)
        storedShares = AnswerShares(limits)
        storedOfConnections = Shares(limit: limits.answerBytesPerConnection)
        let each = Memory.Limits(
            client: limits.ofClient, server: limits.ofServer, time: limits.answerTime.nanoseconds)
        parts = (0..<reactors).map { _ in Part(each, shares) }
    }

    /// Where the answer of a call counts that a store keeps: within the same limits as those in memory.
    func storedRoom(of connection: ConnectionName, _ request: Memory.Request) -> StoredAnswerRoom {
        StoredAnswerRoom(
            AnswerHolding(storedShares, principal: request.principal, host: request.host),
            request.isOfServer ? nil : storedOfConnections.share(of: connection))
    }

    private func part(_ connection: ConnectionName) -> Part { parts[names.reactor(of: connection)] }

    func begin(
        _ name: Memory.Name, _ request: Memory.Request, _ call: WaitingCall, at now: UInt64
    ) -> Memory.Outcome? {
        part(name.connection).memory.withLock { $0.begin(name, request, call, at: now) }
    }

    func join(
        _ name: Memory.Name, _ request: Memory.Request, _ call: WaitingCall, at now: UInt64
    ) -> Memory.Outcome? {
        part(name.connection).memory.withLock { $0.join(name, request, call, at: now) }
    }

    func end(_ name: Memory.Name, _ answer: Memory.Answer, at now: UInt64) -> [WaitingCall] {
        part(name.connection).memory.withLock { $0.end(name, answer, at: now) }
    }

    func amend(_ name: Memory.Name, _ answer: Memory.Answer) {
        part(name.connection).memory.withLock { $0.amend(name, answer) }
    }

    func withdraw(_ name: Memory.Name) -> [WaitingCall] {
        part(name.connection).memory.withLock { $0.withdraw(name) }
    }

    func close(_ connection: ConnectionName) { part(connection).memory.withLock { $0.close(connection) } }

    func reopen(_ connection: ConnectionName) -> Bool { part(connection).memory.withLock { $0.reopen(connection) } }

    /// Forgets what is too old, some of it if there is much. Returns after what time to ask again; nil when there is nothing
    /// left.
    func forget(at now: UInt64) -> Duration? {
        let waits = parts.compactMap { part in
            part.memory.withLock { $0.forget(at: now, atMost: Self.forgottenAtOnce) }
        }
        // Not at once: what others wait for comes first. Nor for each answer by itself.
        return waits.min().map { max(.nanoseconds(Int64(clamping: $0)), min(time, .milliseconds(10))) }
    }

    var count: Int { parts.reduce(0) { $0 + $1.memory.withLock { $0.count } } }
}

/// A call over a connection that waits for the answer of an `@Idempotent` method.
struct WaitingCall: Sendable {
    let connection: ServerConnection
    let call: RunningCall
}

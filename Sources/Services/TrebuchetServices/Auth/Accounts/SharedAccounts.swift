internal import Platform
internal import Synchronization
internal import Trebuchet
internal import TrebuchetCluster

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The shared state of several nodes' accounts in the coordination store: records, pending codes and rates.
///
/// All records are in one table, so that an account, its address and its sessions change atomically, on condition that they are
/// unchanged since they were read. The notice of the change (`SessionChangeNotice`) is part of the same step.
final class SharedAccounts: AccountStorage {
    static let table = ClusterTable("auth")
    static let codes = ClusterTable("auth codes")
    static let rates = ClusterTable("auth rates")
    private static let counts = ["count/accounts", "count/guests"]

    private struct State {
        /// The generation of the records table; nil until it was read.
        var generation: String?
        var isLost = false
        var isUncertain = false
        var requestsInFlight = 0
    }

    /// The maximum number of requests of a node at once. Its leases use the same connection, and must not wait for requests of
    /// unauthenticated clients.
    static let maximumInFlight = 1_000

    let tables: any ClusterTables
    /// The identifier of this node in notices.
    let nodeID = Base64URL.encode(.random(count: 12))
    /// Milliseconds since 1970.
    let now: @Sendable () -> Int64
    private let state = Mutex(State())

    private let maximumInFlight: Int

    private let report: @Sendable (String) -> Void

    /// - Parameter limit: the maximum number of requests at once.
    init(
        _ tables: any ClusterTables, atOnce limit: Int, report: @escaping @Sendable (String) -> Void,
        now: @escaping @Sendable () -> Int64
    ) {
        self.tables = tables
        self.report = report
        self.now = now
        maximumInFlight = min(limit, Self.maximumInFlight)
    }

    // MARK: Generation of the table

    /// True when the coordination store has lost the records. All operations fail then, because keys and sessions are
    /// different.
    var isLost: Bool { state.withLock { $0.isLost } }

    /// Notes the generation of the table; returns false when it has changed.
    func recordGeneration(_ newGeneration: String?) -> Bool {
        state.withLock { state in
            if state.generation == nil { state.generation = newGeneration }
            if state.generation != newGeneration { state.isLost = true }
            return !state.isLost
        }
    }

    /// Returns whether a write of unknown outcome has happened since the last call.
    func consumeUnknownOutcome() -> Bool {
        state.withLock { state in
            defer { state.isUncertain = false }
            return state.isUncertain
        }
    }

    func markUncertain() { state.withLock { $0.isUncertain = true } }

    /// Sends a request to the coordination store, unless too many are in progress.
    ///
    /// - Parameter isWriting: true for a write whose effect on connections this node applies itself.
    private func performRequest<Answer>(
        isWriting: Bool = false, _ body: (any ClusterTables) async throws(ClusterEngineError) -> Answer
    ) async throws(AuthError) -> Answer {
        let isFull = state.withLock { state in
            guard state.requestsInFlight < maximumInFlight else { return true }
            state.requestsInFlight += 1
            return false
        }
        if isFull { throw .limitReached("queuedRequests") }
        defer { state.withLock { $0.requestsInFlight -= 1 } }
        do throws(ClusterEngineError) { return try await body(tables) } catch {
            throw unavailable(error, isWriting)
        }
    }

    private func unavailable(_ error: ClusterEngineError, _ isWriting: Bool) -> AuthError {
        switch error.code {
        case .dataLoss: state.withLock { $0.isLost = true }
        // The write may have succeeded, and no code here has applied it to the connections.
        case .unknownOutcome: if isWriting { markUncertain() }
        default: break
        }
        report("the coordination store of the accounts failed: \(error)")
        return .unavailable
    }

    // MARK: Records

    func values(_ names: [String]) async throws -> [AccountStorageValue] {
        guard !isLost else { throw AuthError.unavailable }
        let values = try await performRequest { (tables) async throws(ClusterEngineError) in
            try await tables.values(names, of: Self.table)
        }
        // A client discards a session when the response says that it does not exist. So the response of a store that has lost
        // all data must not be used.
        if zip(names, values).contains(where: { $1 == nil && $0.hasPrefix("session/") }) {
            let feed = try await performRequest { (tables) async throws(ClusterEngineError) in
                try await tables.changeFeed(of: Self.table, after: 1 << 62, limit: 1)
            }
            guard recordGeneration(feed.tableIncarnation) else { throw AuthError.unavailable }
        }
        return values.map { AccountStorageValue(bytes: $0?.bytes, version: $0?.version ?? 0) }
    }

    func page(_ prefix: String, after: String?, limit: Int) async throws -> [(name: String, value: AccountStorageValue)]
    {
        var rows: [(name: String, value: AccountStorageValue)] = []
        var after = after
        while rows.count < limit {
            let (start, count) = (after, limit - rows.count)
            let page = try await performRequest { (tables) async throws(ClusterEngineError) in
                try await tables.rows(of: Self.table, prefix: prefix, after: start, limit: count)
            }
            rows += page.rows.map { ($0.name, AccountStorageValue(bytes: $0.value.bytes, version: $0.value.version)) }
            guard let next = page.next else { break }
            after = next
        }
        return rows
    }

    func write(_ changes: AccountRecords.Changes, expecting expected: [String: UInt64]) async throws -> UInt64? {
        var writes = changes.values.map { TableChange.Write($0, $1.map { .put($0) } ?? .delete) }
        for (name, more) in zip(Self.counts, [changes.count.all, changes.count.guests]) where more != 0 {
            writes.append(.init(name, .increment(Int64(more))))
        }
        var notice = changes.notice
        (notice.origin, notice.at) = (nodeID, now())
        let change = TableChange(
            writes, preconditions: expected.map { .init($0, version: $1) }, notice: notice.isEmpty ? nil : notice.bytes,
            tableIncarnation: state.withLock { $0.generation })
        let outcome = try await performRequest(isWriting: true) { (tables) async throws(ClusterEngineError) in
            try await tables.apply(change, to: Self.table)
        }
        switch outcome {
        case .changed(let number): return number
        case .conflict: return nil
        case .full: throw AuthError.limitReached("accounts")
        }
    }

    /// Reads the number of accounts.
    func count() async throws(AuthError) -> AccountCount {
        let values = try await performRequest { (tables) async throws(ClusterEngineError) in
            try await tables.values(Self.counts, of: Self.table)
        }
        let numbers = values.map { value in
            value.flatMap { Int(String(decoding: $0.bytes, as: UTF8.self)) } ?? 0
        }
        return AccountCount(all: numbers[0], guests: numbers[1])
    }

    /// Returns whether this node should delete expired records: one node does in each interval.
    func acquireExpiryRun(every interval: Duration) async throws(ClusterEngineError) -> Bool {
        let change = TableChange(
            [.init("sweep", .putExpiring(Array(nodeID.utf8), lifetime: interval))],
            preconditions: [.init("sweep", version: 0)])
        if case .changed = try await tables.apply(change, to: Self.table) { return true }
        return false
    }

    // MARK: Rates

    /// Takes one of each rate, or none.
    func consumeRates(_ consumptions: [RateConsumption]) async throws(AuthError) {
        let wait = try await performRequest { (tables) async throws(ClusterEngineError) in
            try await tables.consumeRates(consumptions, of: Self.rates)
        }
        if let wait { throw .rateLimited(retryAfterMilliseconds: wait.milliseconds) }
    }

    func restore(_ key: RateKey) async {
        // Errors are ignored: an unrestored rate refills over time.
        try? await performRequest { (tables) async throws(ClusterEngineError) in
            try await tables.resetRate(key, of: Self.rates)
        }
    }

    // MARK: Codes

    private static func codes(of bytes: [UInt8]) throws -> AddressCodes<String> {
        try JSONDecoder().decode(AddressCodes<String>.self, from: Data(bytes))
    }

    /// Changes the codes of an address. Concurrent changes of several nodes are applied one after the other.
    func change<Result>(
        codesOf name: String, lifetime: Duration,
        _ body: (inout AddressCodes<String>) throws(AuthError) -> Result
    ) async throws(AuthError) -> Result {
        while true {
            let value = try await performRequest { (tables) async throws(ClusterEngineError) in
                try await tables.values([name], of: Self.codes)
            }[0]
            let before = value.flatMap { try? Self.codes(of: $0.bytes) } ?? AddressCodes()
            var codes = before
            let outcome = Swift.Result { () throws(AuthError) in try body(&codes) }
            guard codes != before else { return try outcome.get() }
            guard let bytes = try? JSONEncoder().encode(codes) else { throw .unavailable }
            let write = TableChange.Write(
                name, codes.isEmpty ? .delete : .putExpiring(Array(bytes), lifetime: lifetime))
            let change = TableChange([write], preconditions: [.init(name, version: value?.version ?? 0)])
            let done = try await performRequest { (tables) async throws(ClusterEngineError) in
                try await tables.apply(change, to: Self.codes)
            }
            switch done {
            case .changed: return try outcome.get()
            case .conflict: continue
            case .full: throw .limitReached("pendingCodes")
            }
        }
    }
}

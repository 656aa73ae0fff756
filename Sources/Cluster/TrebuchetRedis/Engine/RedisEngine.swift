@_exported public import TrebuchetCluster

internal import Transports

/// A coordination store in Redis, version 7 or later (or a compatible server such as Valkey): a single server, the
/// primary that Redis Sentinel names, or a Redis Cluster.
///
/// It connects at the first request. While the server is unreachable, all requests fail with `unavailable` at once;
/// they succeed again when it is reachable.
public final class RedisEngine: ClusterEngine {
    /// The limits.
    public let limits: ClusterEngineLimits
    private let durability: RedisDurability
    let confirmation: RedisConfirmation?
    /// A Boolean value that indicates whether the durability is `.replicated`.
    public var confirmsWrites: Bool { confirmation != nil }
    /// Those for commands, to all servers.
    public var connectionCount: Int { route.connectionCount }
    let keys: EngineKeys
    let route: any RedisRoute
    private let hasSentinels: Bool

    /// Creates a coordination store.
    ///
    /// - Parameters:
    ///   - url: `redis://user:password@host:port/database`, for TLS `rediss://…`;
    ///     `redis+sentinel://host,host,host/name`; or `redis+cluster://host,host`. User, password, port and database
    ///     are optional.
    ///   - prefix: the prefix of all keys; nodes with different prefixes share no data.
    ///   - limits: the same for all nodes.
    ///   - durability: the condition for a completed write.
    ///   - settings: the timeouts and limits of the client.
    /// - Throws: `invalid` when the URL, the prefix or the durability is invalid, or the limits allow a snapshot or
    ///   other value of more than 32 MiB or than half of `RedisSettings.waitingBytes`.
    public init(
        url: String, prefix: String = "tb", limits: ClusterEngineLimits = ClusterEngineLimits(),
        durability: RedisDurability = .engine, settings: RedisSettings = RedisSettings()
    ) throws(ClusterEngineError) {
        try durability.check(settings)
        (self.limits, self.durability, confirmation) = (limits, durability, durability.confirmation)
        keys = try EngineKeys(prefix: prefix)
        let largest = [limits.snapshotBytes, limits.payloadBytes, limits.infoBytes, limits.readBytes].max()!
        guard largest <= min(32 << 20, settings.waitingBytes / 2) else {
            throw ClusterEngineError(
                .invalid,
                "\(largest) bytes per command exceed the limit for a Redis server: 32 MiB, and half of RedisSettings.waitingBytes"
            )
        }
        do throws(TransportError) {
            let url = try RedisURL(url)
            if case .sentinels = url.kind { hasSentinels = true } else { hasSentinels = false }
            route = Self.route(url, settings)
        } catch {
            throw ClusterEngineError(.invalid, error.message)
        }
    }

    private static func route(_ url: RedisURL, _ settings: RedisSettings) -> any RedisRoute {
        let scripts = EngineScripts.all
        return switch url.kind {
        case .server: RedisServerRoute(url, settings, scripts: scripts)
        case .sentinels(let name): RedisServerRoute(primary: name, of: url, settings, scripts: scripts)
        case .cluster: RedisClusterRoute(url, settings, scripts: scripts)
        }
    }

    /// Checks whether the server is reliable: its version, that it does not evict data when memory is short, and that
    /// it writes to a disk. Call it before the first write.
    ///
    /// - Returns: warnings, one sentence each: the possible data loss, and the setting against it.
    /// - Throws: `unsupported`, with the problem and its remedy; `unavailable`.
    public func check() async throws(ClusterEngineError) -> [String] {
        var warnings: [String] = []
        let all = try await performRequest { () async throws(RedisError) in
            try await route.sendToAll(RedisCommand("INFO"))
        }
        for info in all {
            let findings = RedisServerRequirements(info: info.text ?? "", durability, hasSentinels: hasSentinels)
            guard findings.problems.isEmpty else {
                throw ClusterEngineError(.unsupported, findings.problems.joined(separator: " "))
            }
            warnings += findings.warnings.filter { !warnings.contains($0) }
        }
        if durability == .synced { try await checkSync() }
        return warnings
    }

    private func checkSync() async throws(ClusterEngineError) {
        let all = try await performRequest { () async throws(RedisError) in
            try await route.sendToAll(RedisCommand("CONFIG", ["GET", "appendfsync"]))
        }
        for setting in all where setting.elements?.last?.isText("always") != true {
            throw ClusterEngineError(
                .unsupported,
                "The server acknowledges writes before they are on disk, and durability is .synced. Set appendfsync always."
            )
        }
    }

    /// Closes its connections, ends all subscriptions, and fails later requests.
    public func close() async { route.close() }

    // MARK: Requests

    func run(
        _ script: RedisScript, _ keys: [[UInt8]], _ arguments: [RedisArgument], _ confirmation: RedisConfirmation? = nil
    ) async throws(ClusterEngineError) -> RESPValue {
        try await performRequest { () async throws(RedisError) in
            try await route.run(script, keys: keys, arguments, confirmation)
        }
    }

    func performRequest<Answer>(
        _ body: () async throws(RedisError) -> Answer
    ) async throws(ClusterEngineError) -> Answer {
        do throws(RedisError) { return try await body() } catch { throw ClusterEngineError(error) }
    }

    static func damaged(_ what: String) -> ClusterEngineError {
        ClusterEngineError(.damaged, "unexpected data in the server: \(what)")
    }

    // MARK: Nodes

    /// Announces a node, which is live for this duration; it must announce itself again before that.
    public func renewNode(_ node: ClusterNode, info: [UInt8], duration: Duration) async throws(ClusterEngineError) {
        try limits.check(info: info)
        let duration = try ClusterEngineLimits.milliseconds(duration)
        _ = try await run(
            EngineScripts.announce, keys.nodes,
            [.text(node.description), .bytes(info), .integer(Int64(duration))])
    }

    /// Removes a node when the server executes the request.
    public func removeNode(_ node: ClusterNode) async throws(ClusterEngineError) {
        let key = keys.nodes[0]
        _ = try await performRequest { () async throws(RedisError) in
            try await route.send(RedisCommand("ZREM", [.bytes(key), .text(node.description)]), key: key)
        }
    }

    /// Returns the live nodes by the server's clock, in the order of their names.
    public func nodes() async throws(ClusterEngineError) -> [LiveNode] {
        let found = try await run(EngineScripts.nodes, keys.nodes, []).elements ?? []
        var nodes: [LiveNode] = []
        for index in stride(from: 0, to: found.count - 2, by: 3) {
            guard let node = found[index].text.flatMap({ ClusterNode($0) }), let left = found[index + 1].number,
                let info = found[index + 2].bytes
            else { throw Self.damaged("the list of nodes") }
            nodes.append(LiveNode(node, info: info, remaining: .milliseconds(left)))
        }
        return nodes.sorted { $0.node.description < $1.node.description }
    }

    // MARK: Slots

    /// Acquires a slot without an owner, or with a lease that has expired by the server's clock.
    public func acquireSlot(
        _ slot: ClusterSlot, for node: ClusterNode, duration: Duration, generation: String?
    ) async throws(ClusterEngineError) -> SlotAcquisition {
        let duration = try ClusterEngineLimits.milliseconds(duration)
        let answer =
            try await run(
                EngineScripts.acquire, [keys.owner(of: slot)],
                [.text(node.description), .integer(Int64(duration)), .text(generation ?? "")], confirmation
            ).elements ?? []
        if answer.first?.isText("lost") == true { throw .generationLost }
        if answer.first?.isText("owned") == true { return .ownedByOther(try Self.holder(of: slot, answer.dropFirst())) }
        guard answer.count == 2, answer[0].isText("acquired"), let fence = answer[1].number else {
            throw Self.damaged("the owner of \(slot)")
        }
        return .acquired(SlotLease(slot, owner: node, fence: UInt64(clamping: fence)))
    }

    /// Extends a lease to this duration from now; false if it is lost.
    public func renewLease(_ lease: SlotLease, duration: Duration) async throws(ClusterEngineError) -> Bool {
        let duration = try ClusterEngineLimits.milliseconds(duration)
        let answer = try await run(
            EngineScripts.renew, [keys.owner(of: lease.slot)], Self.words(lease) + [.integer(Int64(duration))])
        try Self.checkFence(answer, lease)
        return answer.number == 1
    }

    /// Releases a slot; false if its lease is lost.
    public func releaseLease(_ lease: SlotLease) async throws(ClusterEngineError) -> Bool {
        let answer = try await run(EngineScripts.release, [keys.owner(of: lease.slot)], Self.words(lease))
        try Self.checkFence(answer, lease)
        return answer.number == 1
    }

    /// Returns the owner of the slot now.
    public func owner(of slot: ClusterSlot) async throws(ClusterEngineError) -> SlotOwner? {
        let answer = try await run(EngineScripts.holder, [keys.owner(of: slot)], []).elements ?? []
        return answer.isEmpty ? nil : try Self.holder(of: slot, answer[...])
    }

    private static func holder(
        of slot: ClusterSlot, _ words: ArraySlice<RESPValue>
    ) throws(ClusterEngineError) -> SlotOwner {
        let words = Array(words)
        guard words.count == 3, let owner = words[0].text.flatMap({ ClusterNode($0) }), let fence = words[1].number,
            let left = words[2].number
        else { throw damaged("the owner of \(slot)") }
        let lease = SlotLease(slot, owner: owner, fence: UInt64(clamping: fence))
        return SlotOwner(lease, remaining: .milliseconds(left))
    }

    /// Throws if the script reports that the server has lost the lease's fence.
    private static func checkFence(_ answer: RESPValue, _ lease: SlotLease) throws(ClusterEngineError) {
        guard let words = answer.elements, words.first?.isText("fell") == true else { return }
        throw .fenceFell(of: lease, to: UInt64(clamping: words.last?.number ?? 0))
    }

    private static func words(_ lease: SlotLease) -> [RedisArgument] {
        [.text(lease.owner.description), .text(String(lease.fence))]
    }

    // MARK: Logs

    /// Compares, records, appends and publishes in one script.
    public func append(
        _ change: LogAppend, to log: ClusterLog, lease: SlotLease
    ) async throws(ClusterEngineError) -> AppendOutcome {
        try limits.check(change, log, lease)
        var arguments = Self.words(lease)
        arguments += [
            .text(String(change.expectedHead)), .bytes(keys.part(.published, of: log)),
            .integer(Int64(limits.entriesPerLog)),
            change.call == nil ? "e" : change.payload == nil ? "c" : "ec", .bytes(change.payload ?? []),
        ]
        if let call = change.call {
            arguments += [
                .text(call.id), .bytes(call.reply), .integer(Int64(limits.repliesPerLog)),
                .integer(Int64(max(1, limits.replyLifetime / .milliseconds(1)))),
            ]
        }
        let parts = [EngineKeys.KeySuffix.meta, .log, .done, .calls].map { keys.part($0, of: log) }
        let answer = try await run(EngineScripts.append, [keys.owner(of: lease.slot)] + parts, arguments, confirmation)
        try Self.checkFence(answer, lease)
        let words = answer.elements ?? []
        if let refusal = Self.refusal(words) {
            switch refusal {
            case .fenced(let fence): return .fenced(fence)
            case .leaseOver: return .leaseExpired
            }
        }
        guard let word = words.first else { throw Self.damaged("log '\(log)'") }
        if word.isText("full") { return .full }
        guard words.count == 2 else { throw Self.damaged("log '\(log)'") }
        if word.isText("repeated"), let reply = words[1].bytes { return .repeated(reply) }
        guard let offset = words[1].number.flatMap({ UInt64(exactly: $0) }) else { throw Self.damaged("log '\(log)'") }
        if word.isText("top") { return .headMismatch(offset) }
        guard word.isText("accepted") else { throw Self.damaged("log '\(log)'") }
        return .accepted(offset)
    }

    /// The reason why the server refused a write under a lease.
    private enum LeaseRejection {
        case fenced(UInt64)
        case leaseOver
    }

    private static func refusal(_ words: [RESPValue]) -> LeaseRejection? {
        if words.count == 1, words[0].isText("over") { return .leaseOver }
        guard words.count == 2, words[0].isText("fenced"), let fence = words[1].number else { return nil }
        return .fenced(UInt64(clamping: fence))
    }

    /// Stores a snapshot, and deletes entries that it makes unnecessary.
    public func storeSnapshot(
        _ snapshot: [UInt8], at offset: UInt64, of log: ClusterLog, lease: SlotLease, keepingLast: Int
    ) async throws(ClusterEngineError) -> SnapshotOutcome {
        try limits.check(snapshot: snapshot, log, lease)
        let answer = try await run(
            EngineScripts.store,
            [keys.owner(of: lease.slot), keys.part(.meta, of: log), keys.part(.log, of: log)],
            Self.words(lease) + [.text(String(offset)), .bytes(snapshot), .integer(Int64(max(0, keepingLast)))],
            confirmation)
        return try Self.outcome(answer, log, lease)
    }

    /// Removes a log.
    public func removeLog(
        _ log: ClusterLog, at offset: UInt64, lease: SlotLease
    ) async throws(ClusterEngineError) -> SnapshotOutcome {
        try limits.check(log, lease)
        let parts = [EngineKeys.KeySuffix.meta, .log, .done, .calls].map { keys.part($0, of: log) }
        let answer = try await run(
            EngineScripts.remove, [keys.owner(of: lease.slot)] + parts,
            Self.words(lease) + [.text(String(offset))], confirmation)
        return try Self.outcome(answer, log, lease)
    }

    private static func outcome(
        _ answer: RESPValue, _ log: ClusterLog, _ lease: SlotLease
    ) throws(ClusterEngineError) -> SnapshotOutcome {
        try checkFence(answer, lease)
        let words = answer.elements ?? []
        switch refusal(words) {
        case .fenced(let fence): return .fenced(fence)
        case .leaseOver: return .leaseExpired
        case nil: break
        }
        if words.first?.isText("stored") == true { return .stored }
        guard words.first?.isText("misplaced") == true else { throw damaged("log '\(log)'") }
        return .positionMismatch
    }

    /// Returns the entries after a position, with a snapshot if necessary.
    public func readLog(
        _ log: ClusterLog, after position: LogPosition?, limit: Int
    ) async throws(ClusterEngineError) -> LogReadResult {
        try limits.check(log)
        let answer = try await run(
            EngineScripts.read, [keys.part(.meta, of: log), keys.part(.log, of: log)],
            [
                .text(position.map { String($0.fence) } ?? ""), .text(position.map { String($0.offset) } ?? ""),
                .integer(Int64(max(1, limit))), .integer(Int64(limits.readBytes)),
            ])
        guard let reading = LogReadResult(answer.elements ?? [], after: position) else {
            throw Self.damaged("log '\(log)'")
        }
        return reading
    }

    /// Returns the reply that was recorded with a call.
    public func reply(to callID: String, in log: ClusterLog) async throws(ClusterEngineError) -> [UInt8]? {
        try limits.check(log)
        try limits.check(callID: callID)
        let key = keys.part(.done, of: log)
        return try await performRequest { () async throws(RedisError) in
            try await route.send(RedisCommand("HGET", [.bytes(key), .text(callID)]), key: key)
        }.bytes
    }

    /// Subscribes to the entries appended to a log. After a lost connection it is resumed automatically.
    public func subscribeToLog(
        _ log: ClusterLog, _ receive: @escaping @Sendable (LogEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription {
        try limits.check(log)
        return try await subscribe(keys.part(.published, of: log)) { event in
            switch event {
            case .message(let bytes):
                // Other messages on the channel are ignored.
                if let entry = ClusterLogEntry(published: bytes) { receive(.appended(entry)) }
            case .mayHaveMissed: receive(.eventsMissed)
            case .ended(let error): receive(.ended(ClusterEngineError(error)))
            }
        }
    }

    // MARK: Messages

    /// Subscribes to the messages to a node. After a lost connection it is resumed automatically.
    public func subscribeToInbox(
        of node: ClusterNode, _ receive: @escaping @Sendable (InboxEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription {
        try await subscribe(keys.inbox(of: node)) { event in
            switch event {
            case .message(let bytes): receive(.message(bytes))
            case .mayHaveMissed: receive(.messagesMissed)
            case .ended(let error): receive(.ended(ClusterEngineError(error)))
            }
        }
    }

    /// Publishes to the node's channel; false if the server has no subscriber.
    public func sendMessage(_ message: [UInt8], to node: ClusterNode) async throws(ClusterEngineError) -> Bool {
        try limits.check(message: message)
        let inbox = keys.inbox(of: node)
        let listeners = try await performRequest { () async throws(RedisError) in
            try await route.send(RedisCommand("SPUBLISH", [.bytes(inbox), .bytes(message)]), key: inbox)
        }
        return listeners.number ?? 0 > 0
    }

    func subscribe(
        _ channel: [UInt8], _ subscriber: @escaping RedisSubscriber
    ) async throws(ClusterEngineError) -> any ClusterSubscription {
        EngineSubscription(
            try await performRequest { () async throws(RedisError) in try await route.subscribe(channel, subscriber) })
    }
}

/// A subscription of the engine, which owns the one of the route.
private final class EngineSubscription: ClusterSubscription {
    private let subscription: any RedisCancellable

    init(_ subscription: any RedisCancellable) { self.subscription = subscription }

    func cancel() { subscription.cancel() }
}

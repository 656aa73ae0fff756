internal import Synchronization

/// The nodes of a cluster, each with its own connections, and the map of slots.
final class RedisClusterRoute: RedisRoute {
    /// The connections to one node: for commands, for confirmed writes, and for channels.
    private struct Node {
        let commands: RedisClient
        let confirmed: RedisClient
        let channels: RedisClient

        func close() { for client in [commands, confirmed, channels] { client.close() } }
    }

    /// The map of slots and the nodes, under the lock.
    private struct State {
        var map = SlotMap()
        var nodes: [RedisURL.Endpoint: Node] = [:]
        /// The map request in progress, which concurrent callers share.
        var reading: Task<RedisError?, Never>?
        var channels: [ObjectIdentifier: WeakChannel] = [:]
        var isClosed = false
    }

    /// A weak reference to a channel.
    private struct WeakChannel {
        weak var channel: RedisClusterChannel?
    }

    private let url: RedisURL
    private let settings: RedisSettings
    private let scripts: [RedisScript]
    private let connections = ConnectionCount()
    private let state = Mutex(State())
    private let ticker = Mutex<RedisRepeatingTask?>(nil)

    init(_ url: RedisURL, _ settings: RedisSettings, scripts: [RedisScript]) {
        self.url = url
        self.settings = settings
        self.scripts = scripts
        let ticker = RedisRepeatingTask(every: settings.topologyInterval) { [weak self] in await self?.refreshMap() }
        self.ticker.withLock { $0 = ticker }
    }

    var connectionCount: Int { connections.value }

    /// Reads the map again, so that subscribers without commands learn of a new owner. Does nothing before the first request.
    private func refreshMap() async {
        guard state.withLock({ !$0.map.isEmpty }) else { return }
        _ = await readMap()
    }

    // MARK: Commands

    func run(
        _ script: RedisScript, keys: [[UInt8]], _ arguments: [RedisArgument], _ confirmation: RedisConfirmation?
    ) async throws(RedisError) -> RESPValue {
        let command = script.command(keys: keys, arguments)
        return try await routed(keys[0]) { (node, isAsking) async throws(RedisError) in
            let client = confirmation == nil ? node.commands : node.confirmed
            // ASKING applies to the next command only: the slot is migrating to that node.
            guard isAsking else {
                return try await client.run(script, keys: keys, arguments, confirmation: confirmation)
            }
            return try await client.send([RedisCommand("ASKING"), command], confirmation: confirmation)
        }
    }

    func send(_ command: RedisCommand, key: [UInt8]) async throws(RedisError) -> RESPValue {
        try await routed(key) { (node, isAsking) async throws(RedisError) in
            try await node.commands.send(isAsking ? [RedisCommand("ASKING"), command] : [command])
        }
    }

    /// Sends to the node of a key, and follows up to `RedisSettings.redirects` redirections.
    private func routed(
        _ key: [UInt8], _ ask: (Node, _ isAsking: Bool) async throws(RedisError) -> RESPValue
    ) async throws(RedisError) -> RESPValue {
        let slot = HashSlot.of(key)
        var endpoint = try await owner(of: slot)
        var isAsking = false
        for turn in 0...max(0, settings.redirects) {
            do throws(RedisError) {
                return try await ask(try node(endpoint), isAsking)
            } catch {
                let next = await self.next(after: error, from: endpoint, slot)
                guard let next, turn < settings.redirects else { throw callerError(error) }
                (endpoint, isAsking) = next
            }
        }
        throw .unavailable("the cluster redirected a command more than \(settings.redirects) times")
    }

    /// Returns the next node after an error; nil if the error does not depend on the node.
    private func next(
        after error: RedisError, from asked: RedisURL.Endpoint, _ slot: Int
    ) async -> (RedisURL.Endpoint, isAsking: Bool)? {
        switch error {
        case .reply(let reply):
            switch RedisRedirect(reply, from: asked) {
            case .moved(let slot, let endpoint):
                state.withLock { $0.map.set(slot, endpoint) }
                // A slot rarely moves alone.
                startReadingMap()
                return (endpoint, false)
            case .ask(_, let endpoint): return (endpoint, true)
            case nil: return nil
            }
        case .unavailable:
            // The command was not sent; another node may have replaced this one.
            guard await readMap() == nil, let owner = state.withLock({ $0.map[slot] }), owner != asked else {
                return nil
            }
            return (owner, false)
        case .unknownOutcome:
            startReadingMap()
            return nil
        case .closed:
            // The node has left the cluster, unless the whole route was closed.
            guard let owner = state.withLock({ $0.isClosed ? nil : $0.map[slot] }), owner != asked else { return nil }
            return (owner, false)
        case .overloaded: return nil
        }
    }

    /// Converts an error for callers, which know only the cluster.
    private func callerError(_ error: RedisError) -> RedisError {
        guard error == .closed, !state.withLock({ $0.isClosed }) else { return error }
        return .unavailable("the node has left the Redis Cluster")
    }

    // MARK: The map

    private func owner(of slot: Int) async throws(RedisError) -> RedisURL.Endpoint {
        if let known = state.withLock({ $0.map[slot] }) { return known }
        if let error = await readMap() { throw error }
        guard let owner = state.withLock({ $0.map[slot] }) else {
            throw .unavailable("no node of the Redis Cluster has slot \(slot)")
        }
        return owner
    }

    private func startReadingMap() { _ = mapReading() }

    /// Reads the map, once for all waiting callers. Returns the error if it fails.
    private func readMap() async -> RedisError? { await mapReading().value }

    private func mapReading() -> Task<RedisError?, Never> {
        state.withLock { state in
            if let reading = state.reading { return reading }
            let reading = Task<RedisError?, Never> { [weak self] in
                guard let self else { return .closed }
                return await self.requestSlotMap()
            }
            state.reading = reading
            return reading
        }
    }

    private func requestSlotMap() async -> RedisError? {
        let known = state.withLock { Array($0.nodes.keys) }
        var failure = RedisError.unavailable("no node of the Redis Cluster is reachable")
        var found: SlotMap?
        for endpoint in known + url.endpoints.filter({ !known.contains($0) }) where found == nil {
            do throws(RedisError) {
                let answer = try await node(endpoint).commands.send(RedisCommand("CLUSTER", ["SLOTS"]))
                found = SlotMap(answer, from: endpoint)
                if found == nil { failure = .unavailable("\(endpoint) reports no slots of a Redis Cluster") }
            } catch {
                failure = error
            }
        }
        let (removed, channels) = state.withLock { state -> ([Node], [RedisClusterChannel]) in
            state.reading = nil
            state.channels = state.channels.filter { $0.value.channel != nil }
            guard let found else { return ([], []) }
            state.map = found
            let known = Set(found.endpoints).union(url.endpoints)
            let removed = state.nodes.filter { !known.contains($0.key) }
            for endpoint in removed.keys { state.nodes[endpoint] = nil }
            return (Array(removed.values), state.channels.values.compactMap(\.channel))
        }
        for channel in channels { channel.follow(found?[channel.slot]) }
        for node in removed { node.close() }
        return found == nil ? failure : nil
    }

    private func node(_ endpoint: RedisURL.Endpoint) throws(RedisError) -> Node {
        let node: Node? = state.withLock { state in
            if state.isClosed { return nil }
            if let node = state.nodes[endpoint] { return node }
            let target = RedisTarget(endpoint, as: url)
            let node = Node(
                commands: RedisClient(target, settings: settings, scripts: scripts, counting: connections),
                confirmed: RedisClient(target, settings: settings, scripts: scripts, counting: connections),
                channels: RedisClient(target, settings: settings))
            state.nodes[endpoint] = node
            return node
        }
        guard let node else { throw .closed }
        return node
    }

    // MARK: Channels

    func subscribe(
        _ channel: [UInt8], _ subscriber: @escaping RedisSubscriber
    ) async throws(RedisError) -> any RedisCancellable {
        let joined = RedisClusterChannel(channel, subscriber, settings) {
            [weak self] (subscriber) async throws(RedisError) in
            guard let self else { throw .closed }
            return try await self.join(channel, subscriber)
        }
        try await joined.start()
        let isOpen = state.withLock { state in
            if !state.isClosed { state.channels[ObjectIdentifier(joined)] = WeakChannel(channel: joined) }
            return !state.isClosed
        }
        guard isOpen else { throw .closed }
        return joined
    }

    /// Subscribes at the node that owns the channel now.
    private func join(
        _ channel: [UInt8], _ subscriber: @escaping RedisSubscriber
    ) async throws(RedisError) -> (RedisSubscription, RedisURL.Endpoint) {
        let slot = HashSlot.of(channel)
        var endpoint = try await owner(of: slot)
        for turn in 0...max(0, settings.redirects) {
            do throws(RedisError) {
                return (try await node(endpoint).channels.subscribe(channel, subscriber), endpoint)
            } catch {
                let next = await self.next(after: error, from: endpoint, slot)
                guard let next, turn < settings.redirects else { throw callerError(error) }
                endpoint = next.0
            }
        }
        throw .unavailable("the cluster redirected a subscription more than \(settings.redirects) times")
    }

    func sendToAll(_ command: RedisCommand) async throws(RedisError) -> [RESPValue] {
        if let error = await readMap() { throw error }
        var all: [RESPValue] = []
        for endpoint in state.withLock({ $0.map.endpoints }) {
            all.append(try await node(endpoint).commands.send(command))
        }
        return all
    }

    func close() {
        ticker.withLock { $0?.stop() }
        let nodes = state.withLock { state in
            defer { state.nodes = [:] }
            state.isClosed = true
            return state.nodes.values
        }
        for node in nodes { node.close() }
    }
}

internal import Networking
internal import Synchronization

/// A route to one server, or to the primary that sentinels name. Channels have a separate connection: the server
/// disconnects a subscriber that does not read, and commands should not fail with it.
final class RedisServerRoute: RedisRoute {
    private let commands: RedisClient
    private let confirmed: RedisClient
    private let channels: RedisClient
    private let ticker: RedisRepeatingTask?
    private let connections = ConnectionCount()

    var connectionCount: Int { connections.value }

    /// Creates the route to one server.
    init(_ url: RedisURL, _ settings: RedisSettings, scripts: [RedisScript]) {
        let target = RedisTarget(url.endpoints[0], as: url)
        commands = RedisClient(target, settings: settings, scripts: scripts, counting: connections)
        confirmed = RedisClient(target, settings: settings, scripts: scripts, counting: connections)
        channels = RedisClient(target, settings: settings)
        ticker = nil
    }

    /// Creates the route to the primary of that name. It connects to a new primary when the connection breaks, when
    /// the server reports that it has become a replica, and when the sentinels, which it polls, name another one.
    init(primary name: String, of url: RedisURL, _ settings: RedisSettings, scripts: [RedisScript]) {
        let sentinels = Sentinels(url, name, settings)
        let target = RedisTarget(as: url, isPrimaryNeeded: true) { try await sentinels.primary() }
        let commands = RedisClient(target, settings: settings, scripts: scripts, counting: connections)
        let confirmed = RedisClient(target, settings: settings, scripts: scripts, counting: connections)
        let channels = RedisClient(target, settings: settings)
        (self.commands, self.confirmed, self.channels) = (commands, confirmed, channels)
        ticker = RedisRepeatingTask(every: settings.topologyInterval) {
            [weak commands, weak confirmed, weak channels] in
            guard let primary = try? await sentinels.primary() else { return }
            for client in [commands, confirmed, channels] { client?.reconnect(unlessTo: primary) }
        }
    }

    func run(
        _ script: RedisScript, keys: [[UInt8]], _ arguments: [RedisArgument], _ confirmation: RedisConfirmation?
    ) async throws(RedisError) -> RESPValue {
        let client = confirmation == nil ? commands : confirmed
        return try await followingFailover { () async throws(RedisError) in
            try await client.run(script, keys: keys, arguments, confirmation: confirmation)
        }
    }

    func send(_ command: RedisCommand, key: [UInt8]) async throws(RedisError) -> RESPValue {
        try await followingFailover { () async throws(RedisError) in try await commands.send(command) }
    }

    /// Leaves a server that has become a replica.
    private func followingFailover(
        _ body: () async throws(RedisError) -> RESPValue
    ) async throws(RedisError) -> RESPValue {
        do throws(RedisError) {
            return try await body()
        } catch {
            if case .reply(let reply) = error, reply.code == "READONLY" {
                for client in [commands, confirmed, channels] { client.reconnect(unlessTo: nil) }
            }
            throw error
        }
    }

    func subscribe(
        _ channel: [UInt8], _ subscriber: @escaping RedisSubscriber
    ) async throws(RedisError) -> any RedisCancellable { try await channels.subscribe(channel, subscriber) }

    func sendToAll(_ command: RedisCommand) async throws(RedisError) -> [RESPValue] {
        [try await commands.send(command)]
    }

    func close() {
        ticker?.stop()
        commands.close()
        confirmed.close()
        channels.close()
    }
}

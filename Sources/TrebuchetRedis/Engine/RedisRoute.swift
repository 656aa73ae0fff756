internal import Networking

/// The way from a key to the server that has it.
protocol RedisRoute: Sendable {
    /// Runs a script at the server of its first key; the others have the same tag.
    func run(
        _ script: RedisScript, keys: [[UInt8]], _ arguments: [RedisArgument]
    ) async throws(RedisError) -> RESPValue

    /// Sends a command to the server of that key or channel.
    func send(_ command: RedisCommand, key: [UInt8]) async throws(RedisError) -> RESPValue

    func subscribe(
        _ channel: [UInt8], _ subscriber: @escaping RedisSubscriber
    ) async throws(RedisError) -> any RedisCancellable

    /// What each server says of itself.
    func info() async throws(RedisError) -> [String]

    func close()
}

/// What goes on until it is cancelled or nobody holds it any more.
protocol RedisCancellable: AnyObject, Sendable {
    func cancel()
}

extension RedisSubscription: RedisCancellable {}

/// One server, or who takes its place. Channels have a connection of their own: the server cuts one that does not take what it
/// hears, and commands are not to go with it.
final class RedisServerRoute: RedisRoute {
    private let commands: RedisClient
    private let channels: RedisClient

    init(_ target: RedisTarget, _ settings: RedisSettings, scripts: [RedisScript]) {
        commands = RedisClient(target, settings: settings, scripts: scripts)
        channels = RedisClient(target, settings: settings)
    }

    func run(
        _ script: RedisScript, keys: [[UInt8]], _ arguments: [RedisArgument]
    ) async throws(RedisError) -> RESPValue {
        try await noticing { () async throws(RedisError) in try await commands.run(script, keys: keys, arguments) }
    }

    func send(_ command: RedisCommand, key: [UInt8]) async throws(RedisError) -> RESPValue {
        try await noticing { () async throws(RedisError) in try await commands.send(command) }
    }

    /// A server that has become a follower of another one is left.
    private func noticing(
        _ body: () async throws(RedisError) -> RESPValue
    ) async throws(RedisError) -> RESPValue {
        do throws(RedisError) {
            return try await body()
        } catch {
            if case .reply(let reply) = error, reply.code == "READONLY" {
                for client in [commands, channels] { client.reactor.run { client.reconnect() } }
            }
            throw error
        }
    }

    func subscribe(
        _ channel: [UInt8], _ subscriber: @escaping RedisSubscriber
    ) async throws(RedisError) -> any RedisCancellable { try await channels.subscribe(channel, subscriber) }

    func info() async throws(RedisError) -> [String] {
        [try await commands.send(RedisCommand("INFO")).text ?? ""]
    }

    func close() {
        commands.close()
        channels.close()
    }
}

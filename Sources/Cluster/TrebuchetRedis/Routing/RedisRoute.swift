/// Routes keys to the servers that own them.
protocol RedisRoute: Sendable {
    /// Runs a script at the server of its first key; the others have the same tag.
    ///
    /// - Parameter confirmation: The confirmation to wait for; confirmed writes use a separate connection, which the confirmation
    ///   blocks.
    func run(
        _ script: RedisScript, keys: [[UInt8]], _ arguments: [RedisArgument], _ confirmation: RedisConfirmation?
    ) async throws(RedisError) -> RESPValue

    /// Sends a command to the server of that key or channel.
    func send(_ command: RedisCommand, key: [UInt8]) async throws(RedisError) -> RESPValue

    func subscribe(
        _ channel: [UInt8], _ subscriber: @escaping RedisSubscriber
    ) async throws(RedisError) -> any RedisCancellable

    /// The number of connections for commands opened so far.
    var connectionCount: Int { get }

    /// Sends a command to each server and returns their replies.
    func sendToAll(_ command: RedisCommand) async throws(RedisError) -> [RESPValue]

    func close()
}

/// A subscription that lasts until it is cancelled or released.
protocol RedisCancellable: AnyObject, Sendable {
    func cancel()
}

extension RedisSubscription: RedisCancellable {}

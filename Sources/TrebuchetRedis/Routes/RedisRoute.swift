/// The way from a key to the server that has it.
protocol RedisRoute: Sendable {
    /// Runs a script at the server of its first key; the others have the same tag.
    ///
    /// - Parameter confirmation: what is confirmed so goes over a connection of its own, which that holds up.
    func run(
        _ script: RedisScript, keys: [[UInt8]], _ arguments: [RedisArgument], _ confirmation: RedisConfirmation?
    ) async throws(RedisError) -> RESPValue

    /// Sends a command to the server of that key or channel.
    func send(_ command: RedisCommand, key: [UInt8]) async throws(RedisError) -> RESPValue

    func subscribe(
        _ channel: [UInt8], _ subscriber: @escaping RedisSubscriber
    ) async throws(RedisError) -> any RedisCancellable

    /// How many connections for commands were opened so far.
    var connectionCount: Int { get }

    /// What each server answers.
    func sendToAll(_ command: RedisCommand) async throws(RedisError) -> [RESPValue]

    func close()
}

/// What goes on until it is cancelled or nobody holds it any more.
protocol RedisCancellable: AnyObject, Sendable {
    func cancel()
}

extension RedisSubscription: RedisCancellable {}

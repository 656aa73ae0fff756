/// The target of a client's connections, resolved for each connection.
package struct RedisTarget: Sendable {
    /// Returns the current address of the server. Called on the client's reactor; its error becomes the reason of the
    /// failed connection.
    let resolve: @Sendable () async throws -> RedisURL.Endpoint
    /// True if a replica is not acceptable.
    let isPrimaryNeeded: Bool
    let isSecure: Bool
    let user: String?
    let password: String?
    let database: Int

    /// Creates the target of one server of a URL, with the URL's credentials.
    package init(_ endpoint: RedisURL.Endpoint, as url: RedisURL) {
        self.init(as: url, isPrimaryNeeded: false) { endpoint }
    }

    /// Creates the target of a sentinel, which has neither databases nor the server's users.
    init(sentinel endpoint: RedisURL.Endpoint, of url: RedisURL) {
        resolve = { endpoint }
        isPrimaryNeeded = false
        isSecure = url.isSecure
        (user, password, database) = (nil, nil, 0)
    }

    init(as url: RedisURL, isPrimaryNeeded: Bool, resolve: @escaping @Sendable () async throws -> RedisURL.Endpoint) {
        self.resolve = resolve
        self.isPrimaryNeeded = isPrimaryNeeded
        (isSecure, user, password, database) = (url.isSecure, url.user, url.password, url.database)
    }

    /// Returns the first commands of a new connection. An error reply to one of them closes it.
    func handshake(name: String, scripts: [RedisScript]) -> [RedisCommand] {
        var hello: [RedisArgument] = ["3"]
        if let password { hello += ["AUTH", .text(user ?? "default"), .text(password)] }
        var commands = [RedisCommand("HELLO", hello + ["SETNAME", .text(name)])]
        if database != 0 { commands.append(RedisCommand("SELECT", [.integer(Int64(database))])) }
        if isPrimaryNeeded { commands.append(RedisCommand("ROLE")) }
        return commands + scripts.map(\.load)
    }
}

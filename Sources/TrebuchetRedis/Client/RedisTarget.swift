/// What a client connects to, asked anew for each connection.
package struct RedisTarget: Sendable {
    /// Where the server is now. Called on the client's reactor; what it throws is why there is no connection.
    let resolve: @Sendable () async throws -> RedisURL.Endpoint
    /// Whether a server that only follows another one is none.
    let isPrimaryNeeded: Bool
    let isSecure: Bool
    let user: String?
    let password: String?
    let database: Int

    /// One server of a URL's, with what that says of who asks.
    package init(_ endpoint: RedisURL.Endpoint, as url: RedisURL) {
        self.init(as: url, isPrimaryNeeded: false) { endpoint }
    }

    /// A sentinel, which has neither databases nor the server's users.
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

    /// What a new connection says first; an error to one of them ends it.
    func greeting(name: String, scripts: [RedisScript]) -> [RedisCommand] {
        var hello: [RedisArgument] = ["3"]
        if let password { hello += ["AUTH", .text(user ?? "default"), .text(password)] }
        var commands = [RedisCommand("HELLO", hello + ["SETNAME", .text(name)])]
        if database != 0 { commands.append(RedisCommand("SELECT", [.integer(Int64(database))])) }
        if isPrimaryNeeded { commands.append(RedisCommand("ROLE")) }
        return commands + scripts.map(\.load)
    }
}

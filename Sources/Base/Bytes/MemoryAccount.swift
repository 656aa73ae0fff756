internal import Synchronization

/// The buffered memory of one connection.
///
/// Bytes are counted for the connection and for the scopes that it shares: its host, its principal and the server. Bytes that are
/// still counted when the account is freed are released.
package final class MemoryAccount: Sendable {
    /// The number of bytes up to which a connection is not closed for the buffered memory of others.
    package static let small = 64 << 10

    /// The counters of the account.
    private struct State {
        var bufferedBytes = 0
        var principal: MemoryBudget?
    }

    private let limit: Int
    private let address: MemoryBudget?
    private let server: MemoryBudget
    private let state = Mutex(State())
    private let onEnd: (@Sendable () -> Void)?

    /// - Parameters:
    ///   - limit: the maximum number of bytes for this connection.
    ///   - address: the budget shared by all connections of its host.
    ///   - onEnd: called when the account is freed.
    package init(
        limit: Int, address: MemoryBudget? = nil, server: MemoryBudget, onEnd: (@Sendable () -> Void)? = nil
    ) {
        self.limit = limit
        self.address = address
        self.server = server
        self.onEnd = onEnd
    }

    deinit {
        let (bufferedBytes, principal) = state.withLock { ($0.bufferedBytes, $0.principal) }
        count(-bufferedBytes, principal)
        onEnd?()
    }

    package var bufferedBytes: Int { state.withLock { $0.bufferedBytes } }

    /// Counts the held bytes for `principal` as well from now on.
    package func join(_ principal: MemoryBudget) {
        state.withLock { state in
            state.principal?.release(state.bufferedBytes)
            state.principal = principal
            principal.adjustUsage(by: state.bufferedBytes)
        }
    }

    /// Reserves bytes for new work.
    ///
    /// - Throws: `MemoryLimitExceeded` if a limit would be exceeded; then it counts nothing.
    package func reserve(_ bytes: Int) throws(MemoryLimitExceeded) {
        let excess: MemoryLimitExceeded? = state.withLock { state in
            guard state.bufferedBytes + bytes <= limit else { return MemoryLimitExceeded(.connection, limit) }
            if let address, !address.hasRoom(for: bytes) {
                return MemoryLimitExceeded(.address, address.limit)
            }
            if let principal = state.principal, principal.usedBytes + bytes > principal.limit {
                return MemoryLimitExceeded(.principal, principal.limit)
            }
            guard server.usedBytes + bytes <= server.limit else { return MemoryLimitExceeded(.server, server.limit) }
            state.bufferedBytes += bytes
            count(bytes, state.principal)
            return nil
        }
        if let excess { throw excess }
    }

    /// Counts a change of the bytes that are already held.
    ///
    /// - Returns: a `MemoryLimitExceeded` if the growth exceeds a limit, alone or with others: the caller must close the connection. A
    ///   connection with few bytes is exempt while the server is less than an eighth over its limit.
    package func adjustUsage(by change: Int) -> MemoryLimitExceeded? {
        state.withLock { state in
            state.bufferedBytes += change
            count(change, state.principal)
            guard change > 0 else { return nil }
            if state.bufferedBytes > limit { return MemoryLimitExceeded(.connection, limit) }
            let isSmall = state.bufferedBytes <= Self.small
            if server.usedBytes - (isSmall ? server.limit / 8 : 0) > server.limit {
                return MemoryLimitExceeded(.server, server.limit)
            }
            guard !isSmall else { return nil }
            if let address, !address.hasRoom(for: 0) { return MemoryLimitExceeded(.address, address.limit) }
            if let principal = state.principal, principal.usedBytes > principal.limit {
                return MemoryLimitExceeded(.principal, principal.limit)
            }
            return nil
        }
    }

    package func release(_ bytes: Int) { _ = adjustUsage(by: -bytes) }

    private func count(_ change: Int, _ principal: MemoryBudget?) {
        server.adjustUsage(by: change)
        address?.adjustUsage(by: change)
        principal?.adjustUsage(by: change)
    }
}

/// An error: a limit on buffered memory is exceeded.
package struct MemoryLimitExceeded: Error, Equatable, Sendable {
    /// The scope of the exceeded limit.
    package enum Scope: Sendable { case connection, address, principal, server }

    package let holder: Scope
    package let limit: Int

    package init(_ holder: Scope, _ limit: Int) {
        self.holder = holder
        self.limit = limit
    }

    /// The description of the exceeded limit with the name of its setting. It fits into a close frame.
    package var reason: String {
        switch holder {
        case .connection:
            "quota exceeded: \(limit) bytes of buffered memory per connection (memory.perConnection)"
        case .address: "quota exceeded: \(limit) bytes of buffered memory per address (memory.perHost)"
        case .principal: "quota exceeded: \(limit) bytes of buffered memory per principal (memory.perPrincipal)"
        case .server: "the server's limit of \(limit) bytes of buffered memory is reached (memory.total); retry later"
        }
    }
}

internal import Synchronization

/// What is held for one connection: counted there, and with all with whom it shares memory: the host it comes from, its
/// principal, the server. What was not given back is when the account goes.
package final class MemoryAccount: Sendable {
    /// Connections that hold no more than this are not ended for what others hold.
    package static let small = 64 << 10

    private struct State {
        var held = 0
        var principal: MemoryBudget?
    }

    private let limit: Int
    private let address: MemoryBudget?
    private let server: MemoryBudget
    private let state = Mutex(State())
    private let onEnd: (@Sendable () -> Void)?

    /// - Parameters:
    ///   - limit: bytes that this connection may hold.
    ///   - address: what all connections of its host hold.
    ///   - onEnd: called when the account has gone.
    package init(
        limit: Int, address: MemoryBudget? = nil, server: MemoryBudget, onEnd: (@Sendable () -> Void)? = nil
    ) {
        self.limit = limit
        self.address = address
        self.server = server
        self.onEnd = onEnd
    }

    deinit {
        let (held, principal) = state.withLock { ($0.held, $0.principal) }
        count(-held, principal)
        onEnd?()
    }

    package var heldBytes: Int { state.withLock { $0.held } }

    /// From now on what is held counts for that principal too.
    package func join(_ principal: MemoryBudget) {
        state.withLock { state in
            state.principal?.release(state.held)
            state.principal = principal
            principal.hold(state.held)
        }
    }

    /// Counts bytes for new work. Throws, and counts nothing, when there is no room for them.
    package func take(_ bytes: Int) throws(MemoryExcess) {
        let excess: MemoryExcess? = state.withLock { state in
            guard state.held + bytes <= limit else { return MemoryExcess(.connection, limit) }
            if let address, address.usedBytes + bytes > address.limit { return MemoryExcess(.address, address.limit) }
            if let principal = state.principal, principal.usedBytes + bytes > principal.limit {
                return MemoryExcess(.principal, principal.limit)
            }
            guard server.usedBytes + bytes <= server.limit else { return MemoryExcess(.server, server.limit) }
            state.held += bytes
            count(bytes, state.principal)
            return nil
        }
        if let excess { throw excess }
    }

    /// Counts a change of what is held already. When it grew and is too much, for itself or together with others, the
    /// connection is to be ended. Who holds little is spared as long as the server is not an eighth over its limit.
    package func hold(_ change: Int) -> MemoryExcess? {
        state.withLock { state in
            state.held += change
            count(change, state.principal)
            guard change > 0 else { return nil }
            if state.held > limit { return MemoryExcess(.connection, limit) }
            let isSmall = state.held <= Self.small
            if server.usedBytes - (isSmall ? server.limit / 8 : 0) > server.limit {
                return MemoryExcess(.server, server.limit)
            }
            guard !isSmall else { return nil }
            if let address, address.usedBytes > address.limit { return MemoryExcess(.address, address.limit) }
            if let principal = state.principal, principal.usedBytes > principal.limit {
                return MemoryExcess(.principal, principal.limit)
            }
            return nil
        }
    }

    package func release(_ bytes: Int) { _ = hold(-bytes) }

    private func count(_ change: Int, _ principal: MemoryBudget?) {
        server.hold(change)
        address?.hold(change)
        principal?.hold(change)
    }
}

/// More would be held for a peer than there is room for.
package struct MemoryExcess: Error, Equatable, Sendable {
    /// Whose limit it is.
    package enum Holder: Sendable { case connection, address, principal, server }

    package let holder: Holder
    package let limit: Int

    package init(_ holder: Holder, _ limit: Int) {
        self.holder = holder
        self.limit = limit
    }

    /// What happened and which setting says so; fits into a close frame.
    package var reason: String {
        switch holder {
        case .connection: "more than \(limit) bytes are held for this connection (heldBytesPerConnection)"
        case .address: "more than \(limit) bytes are held for connections from your address (heldBytesPerAddress)"
        case .principal: "more than \(limit) bytes are held for your connections (heldBytesPerPrincipal)"
        case .server: "the server holds as much as it may, \(limit) bytes (heldBytes); try again later"
        }
    }
}

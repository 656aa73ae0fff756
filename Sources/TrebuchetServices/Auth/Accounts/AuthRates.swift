internal import Trebuchet

/// The rates of account operations that any caller may request. Pure: the time is given, in milliseconds.
///
/// A refused operation takes nothing from any rate.
struct AuthRates<Host: Hashable> {
    /// The caller.
    struct Requester {
        let host: Host
        let connection: UInt64
    }

    private struct RateIndex: Hashable {
        let address: String
        let host: Host
    }

    private var connections: RateTable<Host, UInt64>
    private var hosts: RateTable<Host, Host>
    private var renewals: RateTable<Host, Host>
    private var places: RateTable<Host, RateIndex>
    private var addresses: RateTable<Host, String>

    init(_ limits: AuthLimits) {
        connections = RateTable(limits.codesPerConnection, capacity: limits.rateEntries)
        hosts = RateTable(limits.attemptsPerHost, capacity: limits.rateEntries)
        renewals = RateTable(limits.renewalsPerHost, capacity: limits.rateEntries)
        places = RateTable(limits.codesPerAddress, capacity: limits.rateEntries)
        addresses = RateTable(limits.codesPerAddressFromAllHosts, capacity: limits.rateEntries)
    }

    /// Takes the rates of a code for an address.
    mutating func consumeCode(for address: String, _ asker: Requester, at now: Int64) throws(AuthError) {
        let place = RateIndex(address: address, host: asker.host)
        try Self.check([
            hosts.wait(for: asker.host, at: now), connections.wait(for: asker.connection, at: now),
            places.wait(for: place, at: now), addresses.wait(for: address, at: now),
        ])
        hosts.consume(asker.host, of: asker.host, at: now)
        connections.consume(asker.connection, of: asker.host, at: now)
        places.consume(place, of: asker.host, at: now)
        addresses.consume(address, of: asker.host, at: now)
    }

    /// Takes the rate of a code that is tried, a guest, or an ID token.
    mutating func consumeAttempt(_ asker: Requester, at now: Int64) throws(AuthError) {
        try Self.check([hosts.wait(for: asker.host, at: now)])
        hosts.consume(asker.host, of: asker.host, at: now)
    }

    // MARK: Local counts of shared rates

    /// Throws when this node alone has used the rate of all nodes; then no request to the coordination store is needed.
    func check(_ kind: Kind, _ asker: Requester, at now: Int64) throws(AuthError) {
        switch kind {
        case .code:
            try Self.check([hosts.wait(for: asker.host, at: now), connections.wait(for: asker.connection, at: now)])
        case .attempt: try Self.check([hosts.wait(for: asker.host, at: now)])
        case .renewal: try Self.check([renewals.wait(for: asker.host, at: now)])
        }
    }

    /// Counts an operation that the shared rates have admitted.
    mutating func recordOperation(_ kind: Kind, _ asker: Requester, at now: Int64) {
        switch kind {
        case .code:
            hosts.consume(asker.host, of: asker.host, at: now)
            connections.consume(asker.connection, of: asker.host, at: now)
        case .attempt: hosts.consume(asker.host, of: asker.host, at: now)
        case .renewal: renewals.consume(asker.host, of: asker.host, at: now)
        }
    }

    enum Kind {
        case code
        case attempt
        case renewal
    }

    // MARK: Rates of one node

    /// Takes the rate of a session that is renewed, listed, labelled or ended.
    mutating func consumeRenewal(_ asker: Requester, at now: Int64) throws(AuthError) {
        try Self.check([renewals.wait(for: asker.host, at: now)])
        renewals.consume(asker.host, of: asker.host, at: now)
    }

    /// Restores the rate of an address after a correct code: its user reads the mail and may request codes as at first.
    mutating func usedCode(for address: String, _ asker: Requester) {
        places.remove(RateIndex(address: address, host: asker.host))
    }

    private static func check(_ waits: [Int?]) throws(AuthError) {
        guard let longest = waits.compactMap({ $0 }).max() else { return }
        throw .rateLimited(retryAfterMilliseconds: longest)
    }
}

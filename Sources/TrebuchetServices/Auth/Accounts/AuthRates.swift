internal import Trebuchet

/// The rates of what anybody may ask of accounts. Pure: the time is given, in milliseconds.
///
/// What is refused has taken nothing, of any rate.
struct AuthRates<Host: Hashable> {
    /// Who asks.
    struct Asker {
        let host: Host
        let connection: UInt64
    }

    private struct Place: Hashable {
        let address: String
        let host: Host
    }

    private var connections: RateTable<Host, UInt64>
    private var hosts: RateTable<Host, Host>
    private var renewals: RateTable<Host, Host>
    private var places: RateTable<Host, Place>
    private var addresses: RateTable<Host, String>

    init(_ limits: AuthLimits) {
        connections = RateTable(limits.codesPerConnection, capacity: limits.ratesKept)
        hosts = RateTable(limits.attemptsPerHost, capacity: limits.ratesKept)
        renewals = RateTable(limits.renewalsPerHost, capacity: limits.ratesKept)
        places = RateTable(limits.codesPerAddress, capacity: limits.ratesKept)
        addresses = RateTable(limits.codesPerAddressOfAll, capacity: limits.ratesKept)
    }

    /// A code for an address.
    mutating func takeCode(for address: String, _ asker: Asker, at now: Int64) throws(AuthError) {
        let place = Place(address: address, host: asker.host)
        try Self.check([
            hosts.wait(for: asker.host, at: now), connections.wait(for: asker.connection, at: now),
            places.wait(for: place, at: now), addresses.wait(for: address, at: now),
        ])
        hosts.take(asker.host, of: asker.host, at: now)
        connections.take(asker.connection, of: asker.host, at: now)
        places.take(place, of: asker.host, at: now)
        addresses.take(address, of: asker.host, at: now)
    }

    /// A code that is tried, a guest, or a token of another issuer.
    mutating func takeAttempt(_ asker: Asker, at now: Int64) throws(AuthError) {
        try Self.check([hosts.wait(for: asker.host, at: now)])
        hosts.take(asker.host, of: asker.host, at: now)
    }

    // MARK: What a node counts of rates that count over all nodes

    /// Whether this node alone has let through as much as all may: then nobody else need be asked.
    func check(_ kind: Kind, _ asker: Asker, at now: Int64) throws(AuthError) {
        switch kind {
        case .code:
            try Self.check([hosts.wait(for: asker.host, at: now), connections.wait(for: asker.connection, at: now)])
        case .attempt: try Self.check([hosts.wait(for: asker.host, at: now)])
        case .renewal: try Self.check([renewals.wait(for: asker.host, at: now)])
        }
    }

    /// What all nodes have let through.
    mutating func note(_ kind: Kind, _ asker: Asker, at now: Int64) {
        switch kind {
        case .code:
            hosts.take(asker.host, of: asker.host, at: now)
            connections.take(asker.connection, of: asker.host, at: now)
        case .attempt: hosts.take(asker.host, of: asker.host, at: now)
        case .renewal: renewals.take(asker.host, of: asker.host, at: now)
        }
    }

    enum Kind {
        case code
        case attempt
        case renewal
    }

    // MARK: What one node counts alone

    /// A session that is renewed, looked at or ended.
    mutating func takeRenewal(_ asker: Asker, at now: Int64) throws(AuthError) {
        try Self.check([renewals.wait(for: asker.host, at: now)])
        renewals.take(asker.host, of: asker.host, at: now)
    }

    /// A code of this address was right: who typed it reads its mail, and may ask for others as if it were the first time.
    mutating func usedCode(for address: String, _ asker: Asker) {
        places.forget(Place(address: address, host: asker.host))
    }

    private static func check(_ waits: [Int?]) throws(AuthError) {
        guard let longest = waits.compactMap({ $0 }).max() else { return }
        throw .rateLimited(retryAfterMilliseconds: longest)
    }
}

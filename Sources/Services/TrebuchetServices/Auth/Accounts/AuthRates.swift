internal import Trebuchet

/// The rates of account operations that any caller may request. Pure: the time is given, in milliseconds.
///
/// A refused operation takes nothing from any rate.
struct AuthRates<Host: QuotaHost> {
    /// The caller.
    struct Requester {
        let host: Host
        let connection: UInt64
    }

    enum Operation {
        /// A code for an address; nil where the rates of addresses are counted elsewhere.
        case code(for: String?)
        /// A code that is tried, an ID token, or a guest that signs in again.
        case attempt
        case newGuest
        /// A session that is renewed, listed, labelled or ended.
        case renewal
    }

    private var connections: BucketTable<UInt64>
    private var attempts: HostRateTable<Host>
    private var guests: HostRateTable<Host>
    private var renewals: HostRateTable<Host>
    private var places: HostRateTable<Host>
    private var addresses: BucketTable<String>

    init(_ limits: AuthLimits) {
        connections = BucketTable(
            limits.codesPerConnection, capacity: limits.rateEntries, inheritsConsumption: true)
        attempts = HostRateTable(limits.attemptsPerHost, capacity: limits.rateEntries)
        guests = HostRateTable(limits.guestsPerHost, capacity: limits.rateEntries)
        renewals = HostRateTable(limits.renewalsPerHost, capacity: limits.rateEntries)
        places = HostRateTable(limits.codesPerAddressAndHost, capacity: limits.rateEntries)
        addresses = BucketTable(
            limits.codesPerAddress, capacity: limits.rateEntries, inheritsConsumption: true)
    }

    /// Takes one of each rate of an operation.
    mutating func consume(_ operation: Operation, _ requester: Requester, at now: Int64) throws(AuthError) {
        try check(operation, requester, at: now)
        record(operation, requester, at: now)
    }

    /// Throws when a rate of the operation is used up. Takes nothing.
    func check(_ operation: Operation, _ requester: Requester, at now: Int64) throws(AuthError) {
        let waits: [Int?] =
            switch operation {
            case .code(let address):
                [
                    attempts.wait(for: requester.host, at: now),
                    connections.wait(for: requester.connection, atMilliseconds: now),
                    address.flatMap { places.wait(for: requester.host, $0, at: now) },
                    address.flatMap { addresses.wait(for: $0, atMilliseconds: now) },
                ]
            case .attempt: [attempts.wait(for: requester.host, at: now)]
            case .newGuest: [attempts.wait(for: requester.host, at: now), guests.wait(for: requester.host, at: now)]
            case .renewal: [renewals.wait(for: requester.host, at: now)]
            }
        guard let longest = waits.compactMap({ $0 }).max() else { return }
        throw .rateLimited(retryAfterMilliseconds: longest)
    }

    /// Counts an operation.
    mutating func record(_ operation: Operation, _ requester: Requester, at now: Int64) {
        switch operation {
        case .code(let address):
            attempts.consume(requester.host, at: now)
            connections.take(requester.connection, atMilliseconds: now)
            guard let address else { return }
            places.consume(requester.host, address, at: now)
            addresses.take(address, atMilliseconds: now)
        case .attempt: attempts.consume(requester.host, at: now)
        case .newGuest:
            attempts.consume(requester.host, at: now)
            guests.consume(requester.host, at: now)
        case .renewal: renewals.consume(requester.host, at: now)
        }
    }

    /// Restores the rate of an address after a correct code: its user reads the mail and may request codes as at first.
    mutating func usedCode(for address: String, _ requester: Requester) { places.remove(requester.host, address) }
}

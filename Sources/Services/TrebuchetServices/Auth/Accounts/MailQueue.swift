internal import Platform
internal import Trebuchet

/// The mails that are being handed over, and those that wait for their turn. Pure.
///
/// The next mail is that of the network with the fewest in flight, then of its host and its address with the fewest. When too
/// many wait, the newest of the network with the most is refused.
struct MailQueue<Host: QuotaHost> {
    private struct Mail {
        let host: Host
        let address: ByteText
    }

    /// The numbers of mails by scope.
    private struct Counts {
        var networks = UsageCounts<Host, Int>()
        var hosts = UsageCounts<Host, Int>()
        var addresses = UsageCounts<ByteText, Int>()

        mutating func count(_ mail: Mail, _ change: Int) {
            networks.add(change, to: mail.host.network)
            hosts.add(change, to: mail.host)
            addresses.add(change, to: mail.address)
        }
    }

    private let limit: Int
    private let waitingLimit: Int
    private let limitPerHost: Int
    private var inFlight: [UInt64: Mail] = [:]
    private var waiting: [UInt64: Mail] = [:]
    private var countsInFlight = Counts()
    private var countsWaiting = Counts()
    private var lastNumber: UInt64 = 0

    init(_ limits: AuthLimits) {
        limit = limits.mailsInFlight
        waitingLimit = limits.waitingMails
        limitPerHost = limits.mailsInFlightPerHost
    }

    var waitingCount: Int { waiting.count }
    var isEmpty: Bool { inFlight.isEmpty && waiting.isEmpty }

    /// Throws when a host or its network has too many mails.
    ///
    /// - Parameter isCounted: false for a host without a quota.
    func check(_ host: Host, isCounted: Bool) throws(AuthError) {
        guard isCounted else { return }
        let count = countsInFlight.hosts[host] + countsWaiting.hosts[host]
        let network = host.network
        let all = countsInFlight.networks[network] + countsWaiting.networks[network]
        let most = network == host ? limitPerHost : NetworkQuota.limit(limitPerHost)
        guard count < limitPerHost, all < most else { throw .limitReached("mailsInFlightPerHost") }
    }

    /// Adds a mail.
    ///
    /// - Returns: its number, which `next()` returns when it may be handed over, and the number of a mail that is refused to make
    ///   room, perhaps the same.
    mutating func add(_ address: String, from host: Host) -> (number: UInt64, refused: UInt64?) {
        let mail = Mail(host: host, address: ByteText(address))
        lastNumber += 1
        waiting[lastNumber] = mail
        countsWaiting.count(mail, 1)
        guard waiting.count > waitingLimit + max(0, limit - inFlight.count) else { return (lastNumber, nil) }
        let refused = waiting.max { precedes($0, $1, in: countsWaiting) }?.key
        if let refused { remove(refused) }
        return (lastNumber, refused)
    }

    /// Returns the mail to hand over next; nil when none waits or too many are in flight.
    mutating func next() -> UInt64? {
        guard inFlight.count < limit else { return nil }
        guard let (number, mail) = waiting.min(by: { precedes($0, $1, in: countsInFlight) }) else {
            return nil
        }
        waiting[number] = nil
        countsWaiting.count(mail, -1)
        inFlight[number] = mail
        countsInFlight.count(mail, 1)
        return number
    }

    /// Removes a mail that was handed over, or that waits.
    mutating func remove(_ number: UInt64) {
        if let mail = inFlight.removeValue(forKey: number) { countsInFlight.count(mail, -1) }
        if let mail = waiting.removeValue(forKey: number) { countsWaiting.count(mail, -1) }
    }

    /// Orders mails by the number of mails of their networks, hosts and addresses, then by their age.
    private func precedes(
        _ one: (key: UInt64, value: Mail), _ other: (key: UInt64, value: Mail), in counts: Counts
    ) -> Bool {
        func rank(_ number: UInt64, _ mail: Mail) -> (Int, Int, Int, UInt64) {
            (
                counts.networks[mail.host.network], counts.hosts[mail.host], counts.addresses[mail.address], number
            )
        }
        return rank(one.key, one.value) < rank(other.key, other.value)
    }
}

internal import Platform
internal import Trebuchet

/// The counted bytes of the documents and recorded outcomes of one collection, for the host that has loaded it. Released with it.
///
/// It is used in the isolation of its collection only.
final class CollectionMemory {
    /// Smaller changes are not counted.
    private static let precision = 64 << 10
    /// The time in milliseconds that a write waits for memory.
    private static let maximumWait = 30_000
    /// The maximum number of clients whose waits are measured one by one.
    private static let maximumWaits = 1_024

    private let ledger: CollectionMemoryLedger
    private var charge: CollectionMemoryLedger.Charge
    /// The limit that the last growth has exceeded. The documents may not grow then.
    private(set) var exceeded: CollectionError?
    /// The waiting clients, each with the number of its last refused mutation and the time of the first refusal in milliseconds.
    private var waits: [ByteText: (last: Int, since: Int)] = [:]
    /// The time of the first refusal of all, since the limit was exceeded.
    private var firstWait: Int?

    init(_ ledger: CollectionMemoryLedger, loadedBy host: CallerHost?) {
        self.ledger = ledger
        charge = CollectionMemoryLedger.Charge(
            bytes: 0, holder: QuotaHolder(principal: nil, host: host), client: nil)
    }

    deinit { release() }

    /// Releases the documents of an ended collection.
    func release() {
        ledger.release([charge])
        charge = charged(0)
    }

    /// Counts the documents of a loaded collection; throws when a limit refuses them.
    func load(_ usage: DocumentQuotas.Usage) throws(CollectionError) { try replace(Self.bytes(of: usage)) }

    /// Counts the documents of a loaded collection above the limits when nothing else is counted, so that a large collection can be
    /// used; returns false otherwise.
    func loadAlone(_ usage: DocumentQuotas.Usage) -> Bool {
        guard ledger.totalBytes == 0 else { return false }
        charge = charged(Self.bytes(of: usage))
        ledger.add(charge)
        return true
    }

    /// Counts the documents after commits. They are counted above a limit too, because they exist already.
    func update(_ usage: DocumentQuotas.Usage) {
        let bytes = Self.bytes(of: usage)
        guard exceeded != nil || abs(bytes - charge.bytes) >= Self.precision else { return }
        // Not in place of the earlier bytes, because documents above a limit must be refused until they are below it.
        if exceeded != nil { release() }
        do throws(CollectionError) {
            try replace(bytes)
            (exceeded, waits, firstWait) = (nil, [:], nil)
        } catch {
            release()
            charge = charged(bytes)
            ledger.add(charge)
            exceeded = error
        }
    }

    /// Returns whether documents may grow by a write of this host. The quota of the host that has loaded the collection concerns only
    /// that host, which could otherwise stop the writes of others; theirs are refused when the total is used up.
    func admitsGrowth(by host: CallerHost?) -> Bool {
        guard let exceeded else { return true }
        guard case .clientTooLarge = exceeded, host != charge.holder.host else { return false }
        return ledger.hasRoom
    }

    /// Returns whether a mutation that the limit refuses has waited for 30 s.
    ///
    /// - Parameters:
    ///   - last: the number of the last mutation in the call.
    ///   - now: milliseconds since 1970.
    func hasWaited(_ client: ByteText, _ number: Int, through last: Int, at now: Int) -> Bool {
        let first = firstWait ?? now
        firstWait = first
        if let wait = waits[client], number <= wait.last { return now - wait.since >= Self.maximumWait }
        guard waits.count < Self.maximumWaits || waits[client] != nil else { return now - first >= Self.maximumWait }
        waits[client] = (last, now)
        return false
    }

    private func replace(_ bytes: Int) throws(CollectionError) {
        let new = charged(bytes)
        try ledger.replace([charge], with: new)
        charge = new
    }

    private func charged(_ bytes: Int) -> CollectionMemoryLedger.Charge {
        CollectionMemoryLedger.Charge(bytes: bytes, holder: charge.holder, client: nil)
    }

    private static func bytes(of usage: DocumentQuotas.Usage) -> Int {
        usage.bytes + usage.documents * CollectionLimits.documentOverhead
    }
}

internal import Trebuchet

/// The pending codes of a server, with a maximum number. When it is reached, the networks and hosts with the most codes lose
/// their oldest. Pure: the time is given, in milliseconds.
struct MagicCodes<Host: QuotaHost> {
    /// An evicted code.
    struct EvictedCode: Equatable {
        let address: String
        let host: Host
        let digest: [UInt8]
    }

    private struct CodeIndex: Hashable {
        let address: String
        let host: Host
    }

    private struct Sent {
        let digest: [UInt8]
        let expiry: Int64
    }

    private let lifetime: Int64
    private let tries: Int
    private var table: FairEvictionTable<Host, CodeIndex, Sent>
    private var codes: [String: AddressCodes<Host>] = [:]

    init(_ limits: AuthLimits) {
        lifetime = limits.codeLifetime.wholeMilliseconds
        tries = limits.codeAttempts
        table = FairEvictionTable(capacity: limits.pendingCodes)
    }

    /// Adds a code in place of the host's previous one for the address.
    ///
    /// - Returns: the evicted codes.
    @discardableResult
    mutating func addCode(_ digest: [UInt8], for address: String, from host: Host, at now: Int64) -> [EvictedCode] {
        if table.isFull { removeCodes(table.removeAll { $0.expiry <= now }.map(\.key)) }
        let expiry = now + lifetime
        let evicted = table.insert(
            Sent(digest: digest, expiry: expiry), for: CodeIndex(address: address, host: host), of: host)
        removeCodes(evicted.map(\.key))
        codes[address, default: AddressCodes()].addCode(digest, from: host, until: expiry, tries: tries)
        return evicted.map { EvictedCode(address: $0.key.address, host: $0.key.host, digest: $0.value.digest) }
    }

    /// Removes a code whose mail was not sent, unless a newer one has replaced it.
    mutating func remove(_ digest: [UInt8], for address: String, from host: Host) {
        change(address) { $0.remove(digest, from: host) }
    }

    /// Uses a code up; throws when it is wrong.
    ///
    /// - Parameter host: the host at which the code was entered.
    mutating func consumeCode(_ digest: [UInt8], for address: String, from host: Host, at now: Int64) throws(AuthError)
    {
        guard var changed = codes[address] else { throw .noCode }
        let outcome = Result { () throws(AuthError) in try changed.consumeCode(digest, from: host, at: now) }
        change(address) { $0 = changed }
        try outcome.get()
    }

    private mutating func change(_ address: String, _ body: (inout AddressCodes<Host>) -> Void) {
        guard var changed = codes[address] else { return }
        let before = changed
        body(&changed)
        codes[address] = changed.isEmpty ? nil : changed
        for code in before.codes where !changed.codes.contains(where: { $0.host == code.host }) {
            table.remove(CodeIndex(address: address, host: code.host))
        }
    }

    private mutating func removeCodes(_ indices: [CodeIndex]) {
        for index in indices { change(index.address) { $0.remove(from: index.host) } }
    }
}

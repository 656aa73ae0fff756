internal import Trebuchet

/// The pending codes of a server, with a maximum number. When it is reached, the host with the most codes loses its oldest one, or
/// a new code is refused: hosts with few codes keep them, however many other hosts request one. Pure: the time is given, in
/// milliseconds.
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
    private var table: FairTable<Host, CodeIndex, Sent>
    private var codes: [String: AddressCodes<Host>] = [:]

    init(_ limits: AuthLimits) {
        lifetime = limits.codeLifetime.wholeMilliseconds
        tries = limits.codeAttempts
        table = FairTable(capacity: limits.pendingCodes)
    }

    /// Throws `rateLimited` when the table has no room for a code of a host.
    mutating func checkRoom(for address: String, from host: Host, at now: Int64) throws(AuthError) {
        removeExpired(at: now)
        guard table.hasRoom(for: CodeIndex(address: address, host: host), of: host) else { throw full(at: now) }
    }

    /// Adds a code in place of the host's previous one for the address; throws `rateLimited` without room.
    ///
    /// - Returns: the evicted code.
    @discardableResult
    mutating func addCode(
        _ digest: [UInt8], for address: String, from host: Host, at now: Int64
    ) throws(AuthError) -> EvictedCode? {
        removeExpired(at: now)
        let expiry = now + lifetime
        let inserted = table.insert(
            Sent(digest: digest, expiry: expiry), for: CodeIndex(address: address, host: host), of: host)
        guard inserted.isInserted else { throw full(at: now) }
        if let evicted = inserted.evicted { removeCode(evicted.key) }
        codes[address, default: AddressCodes()].addCode(digest, from: host, until: expiry, tries: tries)
        return inserted.evicted.map {
            EvictedCode(address: $0.key.address, host: $0.key.host, digest: $0.value.digest)
        }
    }

    /// Returns the error for a full table, with the time until the first code expires.
    private mutating func full(at now: Int64) -> AuthError {
        .rateLimited(retryAfterMilliseconds: Int(max(1, (table.oldest?.value.expiry ?? now) - now)))
    }

    /// Removes expired codes: all have the same lifetime, so the oldest expire first.
    private mutating func removeExpired(at now: Int64) {
        while let oldest = table.oldest, oldest.value.expiry <= now {
            table.remove(oldest.key)
            removeCode(oldest.key)
        }
    }

    /// Removes a code whose mail was not sent, unless a newer one has replaced it.
    mutating func remove(_ digest: [UInt8], for address: String, from host: Host) {
        change(address) { $0.remove(digest, from: host) }
    }

    /// Returns the wrong tries that a host has left for the codes of an address; throws `noCode` without a code that it may try.
    func triesLeft(for address: String, from host: Host, at now: Int64) throws(AuthError) -> Int {
        guard let codes = codes[address] else { throw .noCode }
        return try codes.triesLeft(from: host, at: now)
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

    private mutating func removeCode(_ index: CodeIndex) { change(index.address) { $0.remove(from: index.host) } }
}

internal import Trebuchet

/// The codes that were sent and not used yet: one for each address and host that asked for it. Pure: the time is given, in
/// milliseconds.
///
/// A host's wrong tries count for the code that it asked for itself, so that nobody voids another's. Who asked at one place
/// and types the code at another has tries too, but all other hosts have them together: else many of them could guess.
///
/// It has digests alone; who makes them adds a secret, without which a digest of six digits hides nothing.
struct MagicCodes<Host: Hashable> {
    private struct Place: Hashable {
        let address: String
        let host: Host
    }

    private struct Pending {
        let digest: [UInt8]
        let expiry: Int64
        var triesLeft: Int
        /// Of all hosts but the one that asked for it.
        var othersTriesLeft: Int
    }

    private let lifetime: Int64
    private let tries: Int
    private var codes: FairTable<Host, Place, Pending>
    private var hosts: [String: Set<Host>] = [:]

    init(_ limits: AuthLimits) {
        lifetime = limits.codeLifetime.wholeMilliseconds
        tries = limits.codeTries
        codes = FairTable(capacity: limits.pendingCodes)
    }

    /// Notes a code in place of the one that the host had asked for before.
    mutating func add(_ digest: [UInt8], for address: String, from host: Host, at now: Int64) {
        if codes.isFull { forget(codes.removeAll { $0.expiry <= now }) }
        let code = Pending(digest: digest, expiry: now + lifetime, triesLeft: tries, othersTriesLeft: tries)
        let place = Place(address: address, host: host)
        forget(codes.insert(code, for: place, of: host))
        hosts[address, default: []].insert(host)
    }

    /// Forgets a code that did not get on its way, unless a newer one has taken its place.
    mutating func remove(_ digest: [UInt8], for address: String, from host: Host) {
        let place = Place(address: address, host: host)
        if let code = codes[place], Digest.areEqual(code.digest, digest) { remove(place) }
    }

    /// Uses a code up; throws when it is not the right one.
    ///
    /// - Parameter host: where it was typed.
    mutating func use(_ digest: [UInt8], for address: String, from host: Host, at now: Int64) throws(AuthError) {
        for asker in hosts[address] ?? [] {
            let place = Place(address: address, host: asker)
            if let code = codes[place], code.expiry <= now { remove(place) }
        }
        let own = Place(address: address, host: host)
        guard var code = codes[own] else { return try useOthers(digest, for: address) }
        if Digest.areEqual(code.digest, digest) { return remove(own) }
        code.triesLeft -= 1
        if code.triesLeft > 0 { codes.update(own, to: code) } else { remove(own) }
        throw .wrongCode(triesLeft: code.triesLeft)
    }

    /// The code was asked for from another network, if at all.
    private mutating func useOthers(_ digest: [UInt8], for address: String) throws(AuthError) {
        var triesLeft: Int?
        for host in hosts[address] ?? [] {
            let place = Place(address: address, host: host)
            guard var code = codes[place], code.othersTriesLeft > 0 else { continue }
            if Digest.areEqual(code.digest, digest) { return remove(place) }
            code.othersTriesLeft -= 1
            codes.update(place, to: code)
            triesLeft = max(triesLeft ?? 0, code.othersTriesLeft)
        }
        guard let triesLeft else { throw .noCode }
        throw .wrongCode(triesLeft: triesLeft)
    }

    private mutating func remove(_ place: Place) {
        codes.remove(place)
        forget([place])
    }

    private mutating func forget(_ places: [Place]) {
        for place in places {
            hosts[place.address]?.remove(place.host)
            if hosts[place.address]?.isEmpty == true { hosts[place.address] = nil }
        }
    }
}

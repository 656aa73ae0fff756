internal import Trebuchet

/// The pending codes of one address, one for each host that requested one. Pure: the time is given, in milliseconds.
///
/// Wrong tries of a host count for the code that it requested, so no other host can void that code. A code may also be entered
/// at a host other than the one that requested it. All such hosts share their tries; otherwise many hosts together could guess
/// the code.
///
/// It stores digests only. They must be made with a secret, because a plain digest of six digits hides nothing.
struct AddressCodes<Host: Hashable>: Equatable {
    struct Code: Equatable {
        let host: Host
        let digest: [UInt8]
        let expiry: Int64
        fileprivate(set) var triesLeft: Int
        /// The tries left for all hosts except the one that requested the code.
        fileprivate(set) var othersTriesLeft: Int
    }

    /// The codes, oldest first.
    private(set) var codes: [Code] = []

    var isEmpty: Bool { codes.isEmpty }

    /// Adds a code in place of the host's previous one.
    mutating func addCode(_ digest: [UInt8], from host: Host, until expiry: Int64, tries: Int) {
        codes.removeAll { $0.host == host }
        codes.append(Code(host: host, digest: digest, expiry: expiry, triesLeft: tries, othersTriesLeft: tries))
    }

    /// Removes a code, unless a newer one has replaced it.
    mutating func remove(_ digest: [UInt8], from host: Host) {
        codes.removeAll { $0.host == host && Digest.areEqual($0.digest, digest) }
    }

    mutating func remove(from host: Host) { codes.removeAll { $0.host == host } }

    mutating func removeExpired(at now: Int64) { codes.removeAll { $0.expiry <= now } }

    /// Returns the wrong tries that a host has left; throws `noCode` without a code that it may try.
    func triesLeft(from host: Host, at now: Int64) throws(AuthError) -> Int {
        let valid = codes.filter { $0.expiry > now }
        if let own = valid.first(where: { $0.host == host }) { return own.triesLeft }
        guard let others = valid.map(\.othersTriesLeft).max(), others > 0 else { throw .noCode }
        return others
    }

    /// Uses a code up; throws when it is wrong.
    ///
    /// - Parameter host: the host at which the code was entered.
    mutating func consumeCode(_ digest: [UInt8], from host: Host, at now: Int64) throws(AuthError) {
        removeExpired(at: now)
        guard let own = codes.firstIndex(where: { $0.host == host }) else { return try useOthers(digest) }
        if Digest.areEqual(codes[own].digest, digest) {
            codes.remove(at: own)
            return
        }
        codes[own].triesLeft -= 1
        let triesLeft = codes[own].triesLeft
        if triesLeft <= 0 { codes.remove(at: own) }
        throw .wrongCode(triesLeft: triesLeft)
    }

    /// Checks a code that another host, or none, requested.
    private mutating func useOthers(_ digest: [UInt8]) throws(AuthError) {
        var triesLeft: Int?
        for index in codes.indices where codes[index].othersTriesLeft > 0 {
            if Digest.areEqual(codes[index].digest, digest) {
                codes.remove(at: index)
                return
            }
            codes[index].othersTriesLeft -= 1
            triesLeft = max(triesLeft ?? 0, codes[index].othersTriesLeft)
        }
        guard let triesLeft else { throw .noCode }
        throw .wrongCode(triesLeft: triesLeft)
    }
}

extension AddressCodes: Codable where Host: Codable {}
extension AddressCodes.Code: Codable where Host: Codable {}

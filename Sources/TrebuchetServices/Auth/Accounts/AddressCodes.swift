internal import Trebuchet

/// The codes for one address that were sent and not used yet, one for each host that asked. Pure: the time is given, in milliseconds.
///
/// A host's wrong tries count for the code that it asked for itself, so that nobody voids another's. Who asked at one place and types
/// the code at another has tries too, but all other hosts have them together: else many of them could guess.
///
/// It has digests alone; who makes them adds a secret, without which a digest of six digits hides nothing.
struct AddressCodes<Host: Hashable>: Equatable {
    struct Code: Equatable {
        let host: Host
        let digest: [UInt8]
        let expiry: Int64
        fileprivate(set) var triesLeft: Int
        /// Of all hosts but the one that asked for it.
        fileprivate(set) var othersTriesLeft: Int
    }

    /// The oldest first.
    private(set) var codes: [Code] = []

    var isEmpty: Bool { codes.isEmpty }

    /// Notes a code in place of the one that the host had asked for before.
    mutating func add(_ digest: [UInt8], from host: Host, until expiry: Int64, tries: Int) {
        codes.removeAll { $0.host == host }
        codes.append(Code(host: host, digest: digest, expiry: expiry, triesLeft: tries, othersTriesLeft: tries))
    }

    /// Forgets a code, unless a newer one has taken its place.
    mutating func remove(_ digest: [UInt8], from host: Host) {
        codes.removeAll { $0.host == host && Digest.areEqual($0.digest, digest) }
    }

    mutating func remove(from host: Host) { codes.removeAll { $0.host == host } }

    mutating func removeExpired(at now: Int64) { codes.removeAll { $0.expiry <= now } }

    /// Uses a code up; throws when it is not the right one.
    ///
    /// - Parameter host: where it was typed.
    mutating func use(_ digest: [UInt8], from host: Host, at now: Int64) throws(AuthError) {
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

    /// The code was asked for from another network, if at all.
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

internal import Trebuchet

/// The codes that were sent and not used yet, by address. Pure: the time is given, in milliseconds.
///
/// It has digests alone; who makes them adds a secret, without which a digest of six digits hides nothing.
struct MagicCodes {
    private struct Pending {
        let digest: [UInt8]
        let expiry: Int64
        var triesLeft: Int
    }

    private let lifetime: Int64
    private let tries: Int
    private let capacity: Int
    private var pending: [String: Pending] = [:]

    init(_ limits: AuthLimits) {
        lifetime = limits.codeLifetime.wholeMilliseconds
        tries = limits.codeTries
        capacity = limits.pendingCodes
    }

    /// Notes a code in place of an earlier one for the address.
    mutating func add(_ digest: [UInt8], for address: String, at now: Int64) throws(AuthError) {
        if pending[address] == nil, pending.count >= capacity {
            pending = pending.filter { now < $0.value.expiry }
            guard pending.count < capacity else { throw .limitReached("pendingCodes") }
        }
        pending[address] = Pending(digest: digest, expiry: now + lifetime, triesLeft: tries)
    }

    /// Forgets a code that did not get on its way, unless a newer one has taken its place.
    mutating func remove(_ digest: [UInt8], for address: String) {
        if let code = pending[address], Digest.areEqual(code.digest, digest) { pending[address] = nil }
    }

    /// Uses a code up; throws when it is not the right one.
    mutating func use(_ digest: [UInt8], for address: String, at now: Int64) throws(AuthError) {
        guard var code = pending[address], now < code.expiry else {
            pending[address] = nil
            throw .noCode
        }
        if Digest.areEqual(code.digest, digest) {
            pending[address] = nil
            return
        }
        code.triesLeft -= 1
        pending[address] = code.triesLeft > 0 ? code : nil
        throw .wrongCode(triesLeft: code.triesLeft)
    }
}

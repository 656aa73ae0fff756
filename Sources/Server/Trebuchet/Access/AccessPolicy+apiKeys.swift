internal import COpenSSL
internal import Networking

extension AccessPolicy {
    /// Authenticates clients that send one of these keys in `X-API-Key` or as a bearer token. The key is compared with all
    /// keys, each in constant time, so that the response time reveals nothing about them.
    public static func apiKeys(_ principals: [String: Principal]) -> Authenticate {
        let entries = principals.map { (digest: Digest.sha256(Array($0.key.utf8)), principal: $0.value) }
        return { request in
            guard let key = request.headers["X-API-Key"] ?? request.bearerToken else {
                throw AccessDenied.unauthenticated("an API key is required")
            }
            // Digests have equal lengths, unlike the keys.
            let digest = Digest.sha256(Array(key.utf8))
            var found: Principal?
            for entry in entries where Digest.areEqual(entry.digest, digest) { found = entry.principal }
            guard let found else { throw AccessDenied.unauthenticated("unknown API key") }
            return found
        }
    }
}

/// Hashes of libcrypto.
package enum Digest {
    package static func sha256(_ bytes: [UInt8]) -> [UInt8] {
        precondition(OpenSSL.isInitialized, "OpenSSL initialization failed")
        var digest = [UInt8](repeating: 0, count: 32)
        SHA256(bytes, bytes.count, &digest)
        return digest
    }

    package static func hmacSHA256(_ bytes: [UInt8], key: [UInt8]) -> [UInt8] {
        precondition(OpenSSL.isInitialized, "OpenSSL initialization failed")
        var digest = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 32
        HMAC(EVP_sha256(), key, Int32(key.count), bytes, bytes.count, &digest, &count)
        return digest
    }

    /// Compares in constant time for inputs of equal length.
    package static func areEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
        one.count == other.count && CRYPTO_memcmp(one, other, one.count) == 0
    }
}

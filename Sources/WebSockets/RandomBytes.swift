internal import COpenSSL
internal import Networking

/// Random bytes that nobody can foresee.
enum RandomBytes {
    static func make(count: Int) -> [UInt8] {
        precondition(OpenSSL.outlivesReactors, "OpenSSL did not start")
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            precondition(RAND_bytes(buffer.baseAddress, Int32(count)) == 1, "libcrypto has no random bytes to give")
            initialized = count
        }
    }
}

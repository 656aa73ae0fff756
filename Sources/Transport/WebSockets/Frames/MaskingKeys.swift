internal import COpenSSL
internal import Networking

/// A generator of a client's masking keys: an unpredictable key for each frame (RFC 6455 §5.3, §10.3).
///
/// Keys are drawn 64 at a time: one call of the random generator costs as much as masking a frame of some kilobytes.
final class MaskingKeys {
    private static let keysAtOnce = 64

    private var bytes: [UInt8] = []
    private var used = 0

    func next() -> UInt32 {
        if used == bytes.count {
            bytes = RandomBytes.make(count: Self.keysAtOnce * 4)
            used = 0
        }
        defer { used += 4 }
        return bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: used, as: UInt32.self) }
    }
}

/// A source of unpredictable random bytes.
enum RandomBytes {
    static func make(count: Int) -> [UInt8] {
        precondition(OpenSSL.isInitialized, "OpenSSL initialization failed")
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            precondition(RAND_bytes(buffer.baseAddress, Int32(count)) == 1, "libcrypto cannot provide random bytes")
            initialized = count
        }
    }
}

internal import COpenSSL
internal import Networking

/// The masking keys of a client: a new one for each frame, which nobody can foresee (RFC 6455 §5.3, §10.3).
///
/// They are drawn 64 at a time: one call into the generator costs as much as masking a frame of some kilobytes.
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

import Platform
import Testing
import Trebuchet

/// The portable SHA-256, which names folders of accounts.
@Suite struct SHA256Tests {
    @Test("hashes of all lengths up to four blocks are those of libcrypto")
    func lengths() {
        for count in 0...256 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37) }
            #expect(SHA256.digest(of: bytes) == Digest.sha256(bytes), "\(count) bytes")
        }
    }
}

internal import COpenSSL
internal import Networking

/// The keys with which both sides prove that they implement WebSocket (RFC 6455 §1.3, §4).
package enum HandshakeKey {
    private static let suffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

    /// Returns a client's key: 16 random bytes in base64.
    static func random() -> String { base64(RandomBytes.make(count: 16)) }

    /// Returns whether a client's key is 16 bytes in base64: 22 letters, the last of which holds two bits, and `==`.
    package static func isValid(_ key: String) -> Bool {
        let bytes = Array(key.utf8)
        guard bytes.count == 24, bytes[22...] == [0x3D, 0x3D] else { return false }
        return bytes[..<21].allSatisfy(isLetter) && [0x41, 0x51, 0x67, 0x77].contains(bytes[21])
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2B, 0x2F: true
        default: false
        }
    }

    /// Returns the server's response to a client's key.
    package static func accept(for key: String) -> String {
        precondition(OpenSSL.isInitialized, "OpenSSL initialization failed")
        let text = Array((key + suffix).utf8)
        var digest = [UInt8](repeating: 0, count: 20)
        var size: UInt32 = 0
        let status = EVP_Digest(text, text.count, &digest, &size, EVP_sha1(), nil)
        precondition(status == 1 && size == 20, "libcrypto has no SHA-1")
        return base64(digest)
    }

    private static func base64(_ bytes: [UInt8]) -> String {
        var text = [UInt8](repeating: 0, count: (bytes.count + 2) / 3 * 4 + 1)
        let count = EVP_EncodeBlock(&text, bytes, Int32(bytes.count))
        return String(decoding: text[..<Int(count)], as: UTF8.self)
    }
}

internal import COpenSSL
internal import Networking

/// A script, which the server identifies by its digest after it was loaded.
package struct RedisScript: Sendable {
    package let source: String
    /// The SHA-1 in hexadecimal, as computed by the server.
    package let digest: String

    package init(_ source: String) {
        self.source = source
        precondition(OpenSSL.isInitialized, "OpenSSL initialization failed")
        var digest = [UInt8](repeating: 0, count: 20)
        let text = Array(source.utf8)
        let status = EVP_Digest(text, text.count, &digest, nil, EVP_sha1(), nil)
        precondition(status == 1, "libcrypto has no SHA-1")
        let digits = Array("0123456789abcdef".utf8)
        self.digest = String(
            decoding: digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    var load: RedisCommand { RedisCommand("SCRIPT", ["LOAD", .text(source)]) }

    func command(keys: [[UInt8]], _ arguments: [RedisArgument]) -> RedisCommand {
        RedisCommand("EVALSHA", [.text(digest), .integer(Int64(keys.count))] + keys.map { .bytes($0) } + arguments)
    }
}

import Glibc
import Platform
import Transports

/// A socket that sends arbitrary bytes, and reads when the test requests it.
final class RawPeer: Sendable {
    struct Ended: Error {}

    private let descriptor: Int32

    init(_ address: SocketAddress, receiveBuffer: Int32? = nil) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var limit = timeval(tv_sec: 30, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        if var receiveBuffer { setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, 4) }
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = UInt16(address.port).bigEndian
        inet_pton(AF_INET, address.host, &name.sin_addr)
        let descriptor = descriptor
        let status = withUnsafePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        if status != 0 { throw Ended() }
    }

    deinit { close(descriptor) }

    /// Sends as many of the bytes as the peer accepts.
    @discardableResult
    func writeText(_ text: String) -> Int {
        let bytes = Array(text.utf8)
        return bytes.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    }

    /// Sends a client message as a text frame with its length.
    func writeText(message text: String) {
        let count = text.utf8.count
        let length: [UInt8] = count < 126 ? [0x80 | UInt8(count)] : [0xFE, UInt8(count >> 8), UInt8(count & 0xFF)]
        writeText([0x81] + length + [0, 0, 0, 0] + Array(text.utf8))
    }

    func writeText(_ bytes: [UInt8]) {
        _ = bytes.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    }

    /// Reads until the peer closes the connection, outside the pool, which has few threads.
    func readAll() async -> String {
        let descriptor = descriptor
        return await onThread {
            var bytes: [UInt8] = []
            var part = [UInt8](repeating: 0, count: 16_384)
            while true {
                let count = recv(descriptor, &part, part.count, 0)
                guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
                bytes += part[..<count]
            }
        }
    }

    /// Reads up to the first empty line.
    func readHead() async -> String {
        let descriptor = descriptor
        return await onThread {
            var bytes: [UInt8] = []
            var byte: UInt8 = 0
            while !bytes.suffix(4).elementsEqual("\r\n\r\n".utf8), recv(descriptor, &byte, 1, 0) == 1 {
                bytes.append(byte)
            }
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    /// Sends a request over a separate connection, and returns the whole response.
    static func get(
        _ path: String, at address: SocketAddress, _ fields: [String] = [], host: String = "localhost",
        method: String = "GET"
    ) async throws -> String {
        let peer = try RawPeer(address)
        let lines = (["Host: \(host)", "Connection: close"] + fields).map { $0 + "\r\n" }.joined()
        peer.writeText("\(method) \(path) HTTP/1.1\r\n\(lines)\r\n")
        return await peer.readAll()
    }
}

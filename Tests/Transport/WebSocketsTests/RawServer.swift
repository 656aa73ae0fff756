import Glibc

import Transports
@testable import WebSockets

/// A blocking TCP server with hand-written bytes, as a foreign or hostile server might send. It accepts connections one after the other.
final class RawServer {
    private let descriptor: Int32
    let port: Int

    init() throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        // No test waits endlessly. Others of the process may block the reactor for seconds in a debug build.
        var limit = timeval(tv_sec: 40, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let status = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) | listen(descriptor, 16) | getsockname(descriptor, $0, &length)
            }
        }
        port = Int(UInt16(bigEndian: address.sin_port))
        guard status == 0 else { throw RawPeer.Failure(message: "listen: \(errno)") }
    }

    deinit { Glibc.close(descriptor) }

    var url: String { "ws://127.0.0.1:\(port)/chat?room=1" }

    /// Waits for a connection and reads its request.
    func accept() throws -> (peer: RawPeer, request: HTTPRequestHead) {
        let accepted = Glibc.accept(descriptor, nil, nil)
        guard accepted >= 0 else { throw RawPeer.Failure(message: "accept: \(errno)") }
        let peer = RawPeer(descriptor: accepted)
        let request = try Array(peer.receiveHead().utf8).withUnsafeBytes { try HTTPRequestHead.parse($0) }
        return (peer, request)
    }

    /// Accepts the upgrade too, and sends `bytes` after the response.
    func upgrade(_ bytes: [UInt8] = []) throws -> RawPeer {
        let (peer, request) = try accept()
        try peer.send(Self.answer(request) + bytes)
        return peer
    }

    /// A valid response with changes: a nil value omits a field; `more` has additional lines.
    static func answer(
        _ request: HTTPRequestHead, changing changes: [String: String?] = [:], _ more: String = ""
    ) -> [UInt8] {
        var fields: [String: String?] = [
            "Upgrade": "websocket", "Connection": "Upgrade",
            "Sec-WebSocket-Accept": HandshakeKey.accept(for: request.headers["Sec-WebSocket-Key"] ?? ""),
        ]
        fields.merge(changes) { $1 }
        let lines = fields.compactMap { name, value in value.map { "\(name): \($0)\r\n" } }.joined()
        return Array("HTTP/1.1 101 Switching Protocols\r\n\(lines)\(more)\r\n".utf8)
    }
}

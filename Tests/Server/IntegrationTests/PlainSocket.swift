import Glibc
import Networking
import Transports

/// A blocking TCP connection over IPv4, for invalid client behavior.
struct PlainSocket {
    static let upgrade = """
        GET / HTTP/1.1\r\nHost: test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
        Sec-WebSocket-Protocol: trebuchet.v3\r\n\r\n
        """

    private let descriptor: Int32

    init(_ address: SocketAddress) {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        precondition(descriptor >= 0, "socket: \(String(cString: strerror(errno)))")
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = UInt16(address.port).bigEndian
        inet_pton(AF_INET, address.host, &name.sin_addr)
        let status = withUnsafePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        precondition(status == 0, "connect: \(String(cString: strerror(errno)))")
    }

    func send(_ bytes: [UInt8]) {
        precondition(trySend(bytes), "send: \(String(cString: strerror(errno)))")
    }

    /// False when the peer has closed the connection.
    func trySend(_ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) } == bytes.count
    }

    /// Whether the first received bytes are a response with this status. Blocks.
    func receives(status: Int) -> Bool {
        var bytes = [UInt8](repeating: 0, count: 12)
        let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_WAITALL))
        return count == 12 && String(decoding: bytes, as: UTF8.self) == "HTTP/1.1 \(status)"
    }

    /// Reads up to the first empty line, as of a response. Blocks.
    func head() -> String {
        var bytes: [UInt8] = []
        var byte: UInt8 = 0
        while !bytes.suffix(4).elementsEqual("\r\n\r\n".utf8), recv(descriptor, &byte, 1, 0) == 1 { bytes.append(byte) }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Whether the peer has closed the connection by now. Does not block; earlier bytes are discarded.
    var hasEnded: Bool {
        var bytes = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
            if count > 0 { continue }
            return count == 0 || errno != EAGAIN
        }
    }

    /// Closes the connection, orderly or with a reset as a crashed machine does.
    func close(reset: Bool) {
        if reset {
            var option = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        }
        _ = Glibc.close(descriptor)
    }
}

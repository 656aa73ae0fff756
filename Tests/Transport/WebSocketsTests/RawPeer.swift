import Glibc

/// A blocking TCP connection with hand-written bytes, as a foreign or hostile peer might send.
final class RawPeer {
    struct Frame: Equatable {
        var opcode: UInt8
        var payload: [UInt8]
        var isFinal = true
    }

    struct Failure: Error { let message: String }

    private var descriptor: Int32
    private var unread: [UInt8] = []

    /// Takes ownership of a connection, and closes it when freed.
    init(descriptor: Int32) {
        self.descriptor = descriptor
        // No test waits endlessly: a silent peer is an error after this. Other tests of the process may block the reactor for seconds in
        // a debug build.
        var limit = timeval(tv_sec: 40, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var one: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, 4)
    }

    convenience init(port: Int, receiveBuffer: Int32? = nil) throws {
        self.init(descriptor: socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
        if var receiveBuffer { setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, 4) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else { throw Failure(message: "connect: \(errno)") }
    }

    deinit { if descriptor >= 0 { Glibc.close(descriptor) } }

    /// Ends the connection like a crashed machine: later sends of the peer fail.
    func reset() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        Glibc.close(descriptor)
        descriptor = -1
    }

    /// Connects and upgrades.
    static func upgraded(port: Int, path: String = "/", receiveBuffer: Int32? = nil) throws -> RawPeer {
        let peer = try RawPeer(port: port, receiveBuffer: receiveBuffer)
        try peer.send(upgrade(path))
        let head = try peer.receiveHead()
        guard head.hasPrefix("HTTP/1.1 101 ") else { throw Failure(message: head) }
        return peer
    }

    static func upgrade(_ path: String = "/", _ more: String = "") -> [UInt8] {
        Array(
            ("GET \(path) HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\(more)\r\n").utf8)
    }

    func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw Failure(message: "send: \(errno)") }
            sent += count
        }
    }

    func endWriting() { shutdown(descriptor, Int32(SHUT_WR)) }

    private func fill() throws -> Bool {
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
        let count = recv(descriptor, &chunk, chunk.count, 0)
        guard count >= 0 else { throw Failure(message: "recv: \(errno)") }
        unread += chunk[..<count]
        return count > 0
    }

    func receive(_ count: Int) throws -> [UInt8] {
        while unread.count < count {
            guard try fill() else {
                throw Failure(message: "the connection ended after \(unread.count) of \(count) bytes")
            }
        }
        defer { unread.removeFirst(count) }
        return Array(unread[..<count])
    }

    func receiveHead() throws -> String {
        var head: [UInt8] = []
        while !head.suffix(4).elementsEqual(Array("\r\n\r\n".utf8)) { head += try receive(1) }
        return String(decoding: head, as: UTF8.self)
    }

    func receiveFrame() throws -> Frame {
        let head = try receive(2)
        var length = Int(head[1])
        if length > 127 { throw Failure(message: "a server's frame is masked") }
        if length >= 126 {
            length = try receive(length == 126 ? 2 : 8).reduce(0) { $0 << 8 | Int($1) }
        }
        return Frame(opcode: head[0] & 0x0F, payload: try receive(length), isFinal: head[0] & 0x80 != 0)
    }

    /// A frame of a client, with its masking key.
    func receiveMasked() throws -> (opcode: UInt8, key: [UInt8], payload: [UInt8]) {
        let head = try receive(2)
        guard head[1] >= 128 else { throw Failure(message: "a client's frame is not masked") }
        var length = Int(head[1] & 0x7F)
        if length >= 126 { length = try receive(length == 126 ? 2 : 8).reduce(0) { $0 << 8 | Int($1) } }
        let key = try receive(4)
        return (head[0] & 0x0F, key, try receive(length).enumerated().map { $1 ^ key[$0 % 4] })
    }

    /// All bytes until the peer ends the connection.
    func receiveToEnd() throws -> [UInt8] {
        while try fill() {}
        defer { unread = [] }
        return unread
    }
}

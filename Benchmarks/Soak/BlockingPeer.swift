import Commands
import Glibc

/// A blocking TCP connection on which bytes are written manually, for malformed and incomplete input.
final class BlockingPeer {
    private let descriptor: Int32
    private var isClosed = false

    /// Connects over IPv4. Each wait takes at most 20 s.
    init(host: String, port: Int) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw UsageError("socket: \(String(cString: strerror(errno)))") }
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = UInt16(port).bigEndian
        inet_pton(AF_INET, host, &name.sin_addr)
        let status = withUnsafePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else {
            close()
            throw UsageError("connecting to \(host):\(port): \(String(cString: strerror(errno)))")
        }
    }

    deinit { close() }

    func send(_ bytes: [UInt8]) {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            // The server may have closed the connection, which is one of the endings.
            guard count > 0 else { return }
            sent += count
        }
    }

    /// Sends a client frame. Its masking key is 0, which leaves the payload unchanged.
    func send(frame opcode: UInt8, _ payload: [UInt8] = [], firstBits: UInt8 = 0x80) {
        var head = [firstBits | opcode]
        switch payload.count {
        case ...125: head.append(0x80 | UInt8(payload.count))
        case ...0xFFFF: head += [0x80 | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        default: head += [0x80 | 127] + (0..<8).map { UInt8(truncatingIfNeeded: payload.count >> ((7 - $0) * 8)) }
        }
        send(head + [0, 0, 0, 0] + payload)
    }

    func send(text: String) { send(frame: 1, Array(text.utf8)) }

    /// Returns whether bytes arrived before the end of the connection.
    @discardableResult
    func receive() -> Bool {
        var bytes = [UInt8](repeating: 0, count: 4096)
        return recv(descriptor, &bytes, bytes.count, 0) > 0
    }

    func receiveToEnd() { while receive() {} }

    func endWriting() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Closes with a reset, as when a machine fails.
    func reset() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        close()
    }

    func close() {
        if !isClosed { _ = Glibc.close(descriptor) }
        isClosed = true
    }
}

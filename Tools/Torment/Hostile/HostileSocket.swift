import COpenSSL
import Glibc

/// A connection with hand-written bytes, plain or over TLS. It never waits without a limit.
///
/// `@unchecked Sendable`: used by one thread at a time, the one that runs its scenario or, afterwards, the one that closes all.
final class HostileSocket: @unchecked Sendable {
    enum Outcome: Equatable { case bytes(Int), wouldBlock, ended }

    private(set) var descriptor: Int32
    private var ssl: OpaquePointer?

    /// Nil when the server does not accept it.
    init?(port: Int, receiveBuffer: Int?, isSecure: Bool) {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        if var size = receiveBuffer.map(Int32.init) {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        var yes: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = UInt16(port).bigEndian
        inet_pton(AF_INET, "127.0.0.1", &name.sin_addr)
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        let status = withUnsafePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 || errno == EINPROGRESS, wait(for: POLLOUT, milliseconds: 5_000) else {
            close()
            return nil
        }
        guard isSecure else { return }
        guard secure() else {
            close()
            return nil
        }
    }

    deinit { close() }

    /// One context for all; it does not verify the server's certificate.
    ///
    /// `nonisolated(unsafe)`: created once, then only read by OpenSSL, which counts its references atomically.
    private nonisolated(unsafe) static let context: OpaquePointer? = {
        let context = SSL_CTX_new(TLS_client_method())
        // A short write may be repeated from another position in memory.
        SSL_CTX_ctrl(
            context, SSL_CTRL_MODE, Int(SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER), nil)
        return context
    }()

    private func secure() -> Bool {
        guard let session = SSL_new(Self.context) else { return false }
        ssl = session
        SSL_set_fd(session, descriptor)
        SSL_set_connect_state(session)
        return pump(within: 5_000) { SSL_do_handshake(session) } > 0
    }

    /// Repeats a call of OpenSSL until it succeeds, fails or times out.
    private func pump(within milliseconds: Int32, _ call: () -> Int32) -> Int32 {
        while true {
            ERR_clear_error()
            let result = call()
            if result > 0 { return result }
            switch SSL_get_error(ssl, result) {
            case SSL_ERROR_WANT_READ: guard wait(for: POLLIN, milliseconds: milliseconds) else { return -1 }
            case SSL_ERROR_WANT_WRITE: guard wait(for: POLLOUT, milliseconds: milliseconds) else { return -1 }
            default: return -1
            }
        }
    }

    func wait(for event: Int32, milliseconds: Int32) -> Bool {
        if event == POLLIN, let ssl, SSL_pending(ssl) > 0 { return true }
        var item = pollfd(fd: descriptor, events: Int16(event), revents: 0)
        return poll(&item, 1, milliseconds) > 0
    }

    func write(_ bytes: ArraySlice<UInt8>) -> Outcome {
        if bytes.isEmpty { return .bytes(0) }
        return bytes.withUnsafeBytes { buffer in
            guard let ssl else {
                let count = Glibc.send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL))
                if count >= 0 { return .bytes(count) }
                return errno == EAGAIN || errno == EINTR ? .wouldBlock : .ended
            }
            ERR_clear_error()
            return outcome(SSL_write(ssl, buffer.baseAddress, Int32(clamping: buffer.count)))
        }
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Outcome {
        guard let ssl else {
            let count = Glibc.recv(descriptor, buffer.baseAddress, buffer.count, 0)
            if count > 0 { return .bytes(count) }
            return count < 0 && (errno == EAGAIN || errno == EINTR) ? .wouldBlock : .ended
        }
        ERR_clear_error()
        return outcome(SSL_read(ssl, buffer.baseAddress, Int32(buffer.count)))
    }

    private func outcome(_ count: Int32) -> Outcome {
        if count > 0 { return .bytes(Int(count)) }
        let error = SSL_get_error(ssl, count)
        return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? .wouldBlock : .ended
    }

    func requestNewKeys() {
        guard let ssl else { return }
        SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED)
        _ = pump(within: 200) { SSL_do_handshake(ssl) }
    }

    func endWriting() {
        if let ssl { SSL_shutdown(ssl) }
        shutdown(descriptor, Int32(SHUT_WR))
    }

    /// Closes with a reset, like a crashed machine.
    func reset() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        close()
    }

    func close() {
        if let ssl { SSL_free(ssl) }
        ssl = nil
        if descriptor >= 0 { _ = Glibc.close(descriptor) }
        descriptor = -1
    }
}

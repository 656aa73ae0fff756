internal import CEpoll
internal import Glibc
internal import Transports

/// A non-blocking TCP socket: system calls with named errors.
///
/// It does not close itself; its owner (`ByteChannel`, `Listener`) closes it once.
struct Socket {
    let descriptor: Int32

    static func open(for address: SocketAddress) throws(TransportError) -> Socket {
        let family = address.isIPv6 ? AF_INET6 : AF_INET
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(family, type, 0)
        guard descriptor >= 0 else { throw .system("socket", errno, "opening a socket for \(address)") }
        return Socket(descriptor: descriptor)
    }

    func close() { _ = Glibc.close(descriptor) }

    func set(_ option: Int32, level: Int32 = SOL_SOCKET, to value: Int32 = 1) {
        var value = value
        setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Makes a socket that listens on `::` accept IPv4 connections, whatever the system's default is, and any other IPv6 socket
    /// accept none.
    func setFamilies(of address: SocketAddress) {
        if address.isIPv6 { set(IPV6_V6ONLY, level: Int32(IPPROTO_IPV6), to: address.isIPv6Wildcard ? 0 : 1) }
    }

    /// Disables Nagle's algorithm: output is gathered already, with one `send` per turn.
    func disableNagle() { set(TCP_NODELAY, level: Int32(IPPROTO_TCP)) }

    /// Limits the output that the kernel keeps unsent for a peer that reads slowly. More stays in the queue of the connection, where it
    /// is counted. Without a limit it may be megabytes.
    func limitUnsentBytes() { set(TCP_NOTSENT_LOWAT, level: Int32(IPPROTO_TCP), to: 64 << 10) }

    /// Makes `close` reset the connection instead of ending it in order.
    func resetWhenClosed() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    func bind(to address: SocketAddress) -> Int32 {
        address.withSystemAddress { Glibc.bind(descriptor, $0, $1) } == 0 ? 0 : errno
    }

    func listen(backlog: Int32) -> Int32 { Glibc.listen(descriptor, backlog) == 0 ? 0 : errno }

    /// Returns 0, EINPROGRESS, or the error.
    func connect(to address: SocketAddress) -> Int32 {
        address.withSystemAddress { Glibc.connect(descriptor, $0, $1) } == 0 ? 0 : errno
    }

    /// Returns the error of an asynchronous connect.
    func pendingError() -> Int32 {
        var value: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &value, &size)
        return value
    }

    /// Returns a waiting connection, or the error (EAGAIN if there is none).
    func accept() -> (socket: Socket?, error: Int32) {
        let flags = Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let descriptor = gnu_accept4(self.descriptor, nil, nil, flags)
        return descriptor >= 0 ? (Socket(descriptor: descriptor), 0) : (nil, errno)
    }

    var localAddress: SocketAddress? { address(getsockname) }
    var remoteAddress: SocketAddress? { address(getpeername) }

    private func address(
        _ call: (Int32, UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<socklen_t>?) -> Int32
    ) -> SocketAddress? {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                call(descriptor, $0, &size) == 0 ? SocketAddress($0) : nil
            }
        }
    }

    /// Returns the number of bytes read, 0 at the end of the stream, or the negated error.
    @inline(__always)
    func receive(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
        return count >= 0 ? count : -Int(errno)
    }

    /// Returns the number of bytes sent, or the negated error.
    @inline(__always)
    func send(_ bytes: UnsafeRawBufferPointer) -> Int {
        let count = Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        return count >= 0 ? count : -Int(errno)
    }

    /// Sends several pieces like `writev`, but without SIGPIPE. Returns the number of bytes sent, or the negated error.
    func send(_ pieces: UnsafeMutableBufferPointer<iovec>) -> Int {
        var message = msghdr()
        message.msg_iov = pieces.baseAddress
        message.msg_iovlen = pieces.count
        let count = sendmsg(descriptor, &message, Int32(MSG_NOSIGNAL))
        return count >= 0 ? count : -Int(errno)
    }

    /// The kernel's delivery state: the bytes acknowledged by the peer, and whether some are still unacknowledged or unsent.
    var delivery: (acknowledged: UInt64, isWaiting: Bool)? {
        // Offsets in `struct tcp_info` of linux/tcp.h, which are stable; Glibc's own declaration ends before `tcpi_bytes_acked`.
        let (unacknowledged, acknowledged, unsent, size) = (24, 120, 144, 148)
        return withUnsafeTemporaryAllocation(byteCount: 256, alignment: 8) { info in
            var count = socklen_t(info.count)
            guard getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_INFO, info.baseAddress, &count) == 0, count >= size
            else { return nil }
            let isWaiting =
                info.load(fromByteOffset: unacknowledged, as: UInt32.self) > 0
                || info.load(fromByteOffset: unsent, as: UInt32.self) > 0
            return (info.load(fromByteOffset: acknowledged, as: UInt64.self), isWaiting)
        }
    }

    func shutdownWriting() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Frees the port before it returns, even if other processes hold a descriptor of the socket. A forked process briefly has
    /// all descriptors, including those that are closed in it.
    func stopListening() { shutdown(descriptor, Int32(SHUT_RDWR)) }
}

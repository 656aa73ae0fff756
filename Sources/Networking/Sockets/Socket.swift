internal import CEpoll
internal import Glibc
internal import Transports

/// A non-blocking TCP socket: the system calls, with their errors named.
///
/// It does not close itself; its owner (`ByteChannel`, `Listener`) does, once.
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

    /// Has a socket that listens on `::` take connections over IPv4 too, whatever the system's default is, and any other of IPv6 none.
    func setFamilies(of address: SocketAddress) {
        if address.isIPv6 { set(IPV6_V6ONLY, level: Int32(IPPROTO_IPV6), to: address.isIPv6Wildcard ? 0 : 1) }
    }

    /// Small messages leave at once: we gather them ourselves, one `send` per turn.
    func disableNagle() { set(TCP_NODELAY, level: Int32(IPPROTO_TCP)) }

    /// Closing it resets the connection instead of ending it.
    func resetWhenClosed() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    func bind(to address: SocketAddress) -> Int32 {
        address.withSystemAddress { Glibc.bind(descriptor, $0, $1) } == 0 ? 0 : errno
    }

    func listen(backlog: Int32) -> Int32 { Glibc.listen(descriptor, backlog) == 0 ? 0 : errno }

    /// 0, EINPROGRESS, or the error.
    func connect(to address: SocketAddress) -> Int32 {
        address.withSystemAddress { Glibc.connect(descriptor, $0, $1) } == 0 ? 0 : errno
    }

    /// The error of a connect that went on in the background.
    func pendingError() -> Int32 {
        var value: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &value, &size)
        return value
    }

    /// A connection that waits, or the error (EAGAIN when none does).
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

    /// Number of bytes read, 0 at the end of the stream, or the negated error.
    @inline(__always)
    func receive(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
        return count >= 0 ? count : -Int(errno)
    }

    /// Number of bytes sent, or the negated error.
    @inline(__always)
    func send(_ bytes: UnsafeRawBufferPointer) -> Int {
        let count = Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        return count >= 0 ? count : -Int(errno)
    }

    /// Number of bytes sent from the pieces, or the negated error. `writev` that raises no SIGPIPE.
    func send(_ pieces: UnsafeMutableBufferPointer<iovec>) -> Int {
        var message = msghdr()
        message.msg_iov = pieces.baseAddress
        message.msg_iovlen = pieces.count
        let count = sendmsg(descriptor, &message, Int32(MSG_NOSIGNAL))
        return count >= 0 ? count : -Int(errno)
    }

    /// What the kernel knows of the peer's taking: bytes that it has acknowledged so far, and whether it has not got all.
    var delivery: (acknowledged: UInt64, isWaiting: Bool)? {
        // `struct tcp_info` of linux/tcp.h, whose members stay where they are; Glibc's own ends before `tcpi_bytes_acked`.
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

    /// The port is free when this returns, whoever still has a descriptor of the socket: a process that is being made has all of them
    /// for a moment, also those that are to be closed in it.
    func stopListening() { shutdown(descriptor, Int32(SHUT_RDWR)) }
}

import CEpoll
import Commands
import Glibc

/// `trebuchet bench bare-echo`: a TCP echo that uses system calls only, until it is killed. The baseline of one core of the
/// machine.
enum BareEcho {
    /// A connection with its unsent bytes.
    private final class Peer {
        let descriptor: Int32
        var rest: [UInt8] = []

        init(_ descriptor: Int32) { self.descriptor = descriptor }
    }

    static func run(_ arguments: ParsedArguments) async throws {
        let (listener, port) = try BareListener.listen(try arguments.int("--port", in: 0...65535) ?? 9000)
        Console.announce("echoes on tcp://127.0.0.1:\(port) (bare)")
        serve(listener)
    }

    private static func serve(_ listener: Int32) -> Never {
        let poller = epoll_create1(Int32(EPOLL_CLOEXEC))
        watch(listener, EPOLLIN.rawValue, EPOLL_CTL_ADD, poller)
        // The connections by descriptor.
        var peers: [Int32: Peer] = [:]
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 512 << 10, alignment: 16)
        var events = [epoll_event](repeating: epoll_event(), count: 512)
        while true {
            let count = epoll_wait(poller, &events, Int32(events.count), -1)
            for event in events.prefix(max(0, Int(count))) {
                guard event.data.fd != listener else {
                    let descriptor = gnu_accept4(
                        listener, nil, nil, Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue))
                    guard descriptor >= 0 else { continue }
                    BareListener.enable(TCP_NODELAY, of: Int32(IPPROTO_TCP), on: descriptor)
                    peers[descriptor] = Peer(descriptor)
                    watch(descriptor, EPOLLIN.rawValue, EPOLL_CTL_ADD, poller)
                    continue
                }
                guard let peer = peers[event.data.fd] else { continue }
                if !echo(peer, buffer, poller) {
                    close(peer.descriptor)
                    peers[peer.descriptor] = nil
                }
            }
        }
    }

    /// - Returns: false at the end of the connection.
    private static func echo(_ peer: Peer, _ buffer: UnsafeMutableRawBufferPointer, _ poller: Int32) -> Bool {
        if !peer.rest.isEmpty {
            let sent = send(peer.descriptor, peer.rest, peer.rest.count, Int32(MSG_NOSIGNAL))
            if sent > 0 { peer.rest.removeFirst(sent) }
            guard peer.rest.isEmpty else { return sent >= 0 || errno == EAGAIN }
            watch(peer.descriptor, EPOLLIN.rawValue, EPOLL_CTL_MOD, poller)
        }
        let count = recv(peer.descriptor, buffer.baseAddress, buffer.count, 0)
        guard count > 0 else { return count < 0 && errno == EAGAIN }
        let sent = max(0, send(peer.descriptor, buffer.baseAddress, count, Int32(MSG_NOSIGNAL)))
        guard sent < count else { return true }
        // Reading stops until the rest is sent.
        peer.rest = Array(buffer[sent..<count])
        watch(peer.descriptor, EPOLLOUT.rawValue, EPOLL_CTL_MOD, poller)
        return true
    }

    private static func watch(_ descriptor: Int32, _ events: UInt32, _ change: Int32, _ poller: Int32) {
        var event = epoll_event()
        event.events = events
        event.data.fd = descriptor
        epoll_ctl(poller, change, descriptor, &event)
    }
}

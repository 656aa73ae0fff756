internal import Bytes
internal import Glibc
internal import Platform
internal import Synchronization
internal import TrebuchetWire

/// One end of a connection between an administrator and a server: lines of JSON. Blocking calls run on dedicated threads.
///
/// The descriptor is closed when the object is freed.
package final class AdminConnection: Sendable {
    /// The connection cannot be used any more: the peer has closed it, is too slow, or has violated the protocol.
    package struct Broken: Error, CustomStringConvertible {
        package let description: String

        init(_ description: String) { self.description = description }
    }

    /// Bytes of one line. Default 4 MiB.
    package static let maximumLineLength = 4 << 20
    /// The number of bytes at which queued messages are sent.
    private static let chunk = 64 << 10

    private struct Contents {
        var unread: [UInt8] = []
        /// The number of bytes already searched for a line end.
        var scannedCount = 0
        var unsent: [UInt8] = []

        mutating func takeLine() -> [UInt8]? {
            guard let end = unread[scannedCount...].firstIndex(of: UInt8(ascii: "\n")) else {
                scannedCount = unread.count
                return nil
            }
            defer {
                unread.removeSubrange(...end)
                scannedCount = 0
            }
            return Array(unread[..<end])
        }
    }

    private let descriptor: Int32
    private let contents = Mutex(Contents())

    /// - Parameter idleTime: the maximum time to wait for the peer, in seconds.
    package init(_ descriptor: Int32, idleTime: Int) {
        self.descriptor = descriptor
        var time = timeval(tv_sec: idleTime, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &time, socklen_t(MemoryLayout<timeval>.size))
        }
    }

    deinit { close(descriptor) }

    /// Connects to the server that listens at a path. The server must run as the same user or as root; root may connect to any
    /// server.
    package static func connect(to path: String) throws(AdminSocketError) -> AdminConnection {
        try AdminSocketFile.connect(to: path)
    }

    /// The user id of the peer, from the operating system; nil when it is unknown.
    package var peerUID: UInt32? {
        // The pid, uid and gid of `struct ucred`.
        var credentials: (Int32, UInt32, UInt32) = (0, .max, .max)
        var size = socklen_t(MemoryLayout.size(ofValue: credentials))
        guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 else { return nil }
        return credentials.1 == .max ? nil : credentials.1
    }

    /// Aborts current and future reads and writes.
    package func abort() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    // MARK: Reading

    /// Reads the next message; returns nil when the peer has closed the connection.
    package func next<Message: Decodable & Sendable>(_ type: Message.Type) async throws -> Message? {
        guard let line = try await onThread({ () throws(Broken) in try self.line() }) else { return nil }
        do {
            return try line.withUnsafeBytes { try ValueCoder().decode(type, from: $0) }
        } catch {
            throw Broken("invalid message: \(error)")
        }
    }

    private func line() throws(Broken) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: Self.chunk)
        while true {
            if let line = contents.withLock({ $0.takeLine() }) { return line }
            let waiting = contents.withLock { $0.unread.count }
            guard waiting <= Self.maximumLineLength else {
                throw Broken("line is longer than \(Self.maximumLineLength) bytes")
            }
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Self.broken("reading") }
            guard count > 0 else {
                guard waiting == 0 else { throw Broken("the peer closed the connection in the middle of a line") }
                return nil
            }
            contents.withLock { $0.unread += buffer[..<count] }
        }
    }

    private static func broken(_ what: String) -> Broken {
        Broken(
            errno == EAGAIN ? "the peer did not respond in time" : "\(what): \(String(cString: strerror(errno)))")
    }

    // MARK: Writing

    /// Queues a message, and sends the queue when it is large.
    package func write(_ message: some Encodable) async throws {
        var line = ByteBuffer()
        try ValueCoder().encode(message, into: &line)
        line.append(UInt8(ascii: "\n"))
        guard line.bytes.count <= Self.maximumLineLength else {
            throw Broken("line is longer than \(Self.maximumLineLength) bytes")
        }
        let isMuch = contents.withLock { contents in
            contents.unsent += line.bytes
            return contents.unsent.count >= Self.chunk
        }
        if isMuch { try await flush() }
    }

    /// Sends the queued messages.
    package func flush() async throws {
        let unsent = contents.withLock { contents in
            defer { contents.unsent = [] }
            return contents.unsent
        }
        guard !unsent.isEmpty else { return }
        try await onThread { () throws(Broken) in try self.send(unsent) }
    }

    /// Sends raw bytes; for tests of protocol violations.
    func write(raw bytes: [UInt8]) async throws { try await onThread { () throws(Broken) in try self.send(bytes) } }

    private func send(_ bytes: [UInt8]) throws(Broken) {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Self.broken("writing") }
            sent += count
        }
    }
}

import Glibc
import Platform
import Synchronization

/// Reads the lines of a file or of standard input, as bytes. It stops waiting for input when it must end.
final class LineReader: Sendable {
    /// The error of a file that cannot be read.
    struct Failed: Error, CustomStringConvertible {
        let description: String
    }

    /// The interval in milliseconds of checks whether to end, while no input arrives.
    private static let pauseMilliseconds: Int32 = 50
    private static let chunk = 64 << 10

    /// The bytes read so far.
    private struct Contents {
        var unread: [UInt8] = []
        /// The position after the lines that were returned.
        var start = 0
        var isAtEnd = false
        var isFirst = true

        mutating func takeLine() -> [UInt8]? {
            guard let line = takeNext() else { return nil }
            defer { isFirst = false }
            return isFirst ? line.withoutByteOrderMark : line
        }

        private mutating func takeNext() -> [UInt8]? {
            if let end = unread[start...].firstIndex(of: UInt8(ascii: "\n")) {
                defer { start = end + 1 }
                return Array(unread[start..<end])
            }
            unread.removeFirst(start)
            start = 0
            guard isAtEnd, !unread.isEmpty else { return nil }
            defer { unread = [] }
            return unread
        }
    }

    private let descriptor: Int32
    private let maximumLength: Int
    private let contents = Mutex(Contents())

    /// - Parameters:
    ///   - path: `-` for standard input.
    ///   - maximumLength: the maximum length of a line in bytes.
    init(_ path: String, maximumLength: Int) throws(Failed) {
        descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        self.maximumLength = maximumLength
        guard descriptor >= 0 else { throw Failed(description: "\(path): \(String(cString: strerror(errno)))") }
    }

    deinit { if descriptor != STDIN_FILENO { close(descriptor) } }

    /// Returns the next line without its terminator; nil after the last one, and when it must end.
    func next(unless isOver: @escaping @Sendable () -> Bool) async throws(Failed) -> [UInt8]? {
        while !isOver() {
            if let line = contents.withLock({ $0.takeLine() }) {
                guard line.count <= maximumLength else { throw tooLong }
                return line
            }
            if contents.withLock({ $0.isAtEnd }) { return nil }
            guard contents.withLock({ $0.unread.count }) <= maximumLength else { throw tooLong }
            // Reading may block, so it must not use a thread of the cooperative pool.
            try await onThread { () throws(Failed) in try self.fill(unless: isOver) }
        }
        return nil
    }

    private var tooLong: Failed { Failed(description: "the line has more than \(maximumLength) bytes") }

    private func fill(unless isOver: @Sendable () -> Bool) throws(Failed) {
        var buffer = [UInt8](repeating: 0, count: Self.chunk)
        while !isOver() {
            var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let ready = poll(&waiting, 1, Self.pauseMilliseconds)
            if ready == 0 || ready < 0 && errno == EINTR { continue }
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            guard count >= 0 else { throw Failed(description: "reading: \(String(cString: strerror(errno)))") }
            return contents.withLock { contents in
                contents.unread += buffer[..<count]
                contents.isAtEnd = count == 0
            }
        }
    }
}

internal import Bytes
internal import Glibc

/// Ranges of the read buffer that are sent without a copy, interleaved with the bytes written in the turn.
///
/// They are valid while the received bytes are being handled. Before that ends, all are sent, or copied if the socket does not
/// accept them.
struct BorrowedBytes {
    /// A range of the read buffer with its position in the output.
    private struct Piece {
        /// The number of bytes that had been written when the range was appended.
        let offset: Int
        let bytes: UnsafeRawBufferPointer
    }

    /// The number of ranges at which they are sent before the turn ends.
    static let most = 64

    private var pieces: [Piece] = []
    private(set) var count = 0

    var isEmpty: Bool { pieces.isEmpty }
    var isFull: Bool { pieces.count >= Self.most }

    mutating func append(_ bytes: UnsafeRawBufferPointer, behind written: Int) {
        pieces.append(Piece(offset: written, bytes: bytes))
        count += bytes.count
    }

    mutating func removeAll() {
        pieces.removeAll(keepingCapacity: true)
        count = 0
    }

    /// Calls `body` with all ranges in order, including the written bytes between them.
    private func forEach(with written: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void) {
        var at = 0
        for piece in pieces {
            if piece.offset > at { body(UnsafeRawBufferPointer(rebasing: written[at..<piece.offset])) }
            body(piece.bytes)
            at = piece.offset
        }
        if at < written.count { body(UnsafeRawBufferPointer(rebasing: written[at...])) }
    }

    /// Sends the bytes. Returns the number of bytes sent, or the negated error.
    func send(with written: UnsafeRawBufferPointer, to socket: Socket) -> Int {
        withUnsafeTemporaryAllocation(of: iovec.self, capacity: 2 * pieces.count + 1) { vectors in
            var used = 0
            forEach(with: written) { bytes in
                vectors[used] = iovec(
                    iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
                used += 1
            }
            return socket.send(UnsafeMutableBufferPointer(rebasing: vectors[..<used]))
        }
    }

    /// Copies all but the first `sent` bytes to a queue.
    func copy(with written: UnsafeRawBufferPointer, from sent: Int = 0, to queue: inout WriteQueue) {
        var unsent = sent
        forEach(with: written) { bytes in
            let skipped = min(unsent, bytes.count)
            unsent -= skipped
            if skipped < bytes.count { queue.append(UnsafeRawBufferPointer(rebasing: bytes[skipped...])) }
        }
    }
}

extension ByteChannel {
    /// Appends bytes from the buffer that the delegate is handling, which must not change any more. Large ranges are sent without
    /// a copy, at the latest when the delegate returns, unless the socket accepts no more or TLS encrypts them.
    package func write(read bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= Self.smallestLent, isCorked, tls == nil, queue.isEmpty, reactor.hasRead(bytes) else {
            return write { $0.append(bytes) }
        }
        reactor.borrowed.pointee.append(bytes, behind: reactor.output.pointee.count)
        if reactor.borrowed.pointee.isFull { sendOutput() }
    }
}

extension Reactor {
    /// Returns whether the bytes are inside the read buffer.
    fileprivate func hasRead(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let start = bytes.baseAddress, let first = readBuffer.baseAddress else { return false }
        return start >= first && start + bytes.count <= first + readBuffer.count
    }
}

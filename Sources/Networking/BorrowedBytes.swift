internal import Bytes
internal import Glibc

/// Bytes of the read buffer that leave from where they lie, between those that were written in the turn.
///
/// They are lent for as long as the bytes that were read are being handled: then all have left, or what the socket did not take was
/// copied.
struct BorrowedBytes {
    private struct Piece {
        /// How many bytes had been written when it was lent.
        let place: Int
        let bytes: UnsafeRawBufferPointer
    }

    /// More are handed to the socket before the turn ends.
    static let most = 64

    private var pieces: [Piece] = []
    private(set) var count = 0

    var isEmpty: Bool { pieces.isEmpty }
    var isFull: Bool { pieces.count >= Self.most }

    mutating func append(_ bytes: UnsafeRawBufferPointer, behind written: Int) {
        pieces.append(Piece(place: written, bytes: bytes))
        count += bytes.count
    }

    mutating func removeAll() {
        pieces.removeAll(keepingCapacity: true)
        count = 0
    }

    /// Calls `body` with all runs of bytes in their order, those written among them.
    private func forEach(with written: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void) {
        var at = 0
        for piece in pieces {
            if piece.place > at { body(UnsafeRawBufferPointer(rebasing: written[at..<piece.place])) }
            body(piece.bytes)
            at = piece.place
        }
        if at < written.count { body(UnsafeRawBufferPointer(rebasing: written[at...])) }
    }

    /// Number of bytes sent, or the negated error.
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

    /// Copies all but the first `sent` bytes.
    func copy(with written: UnsafeRawBufferPointer, from sent: Int = 0, to queue: inout WriteQueue) {
        var gone = sent
        forEach(with: written) { bytes in
            let skipped = min(gone, bytes.count)
            gone -= skipped
            if skipped < bytes.count { queue.append(UnsafeRawBufferPointer(rebasing: bytes[skipped...])) }
        }
    }
}

extension ByteChannel {
    /// Appends bytes of those that the delegate is being handed, which nobody changes any more: many of them leave from where they
    /// lie, when the delegate has returned or before, unless the socket takes no more, or TLS makes records of them.
    package func write(read bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= Self.smallestLent, isCorked, tls == nil, queue.isEmpty, reactor.hasRead(bytes) else {
            return write { $0.append(bytes) }
        }
        reactor.borrowed.pointee.append(bytes, behind: reactor.output.pointee.count)
        if reactor.borrowed.pointee.isFull { sendOutput() }
    }
}

extension Reactor {
    /// Whether they lie in the read buffer.
    fileprivate func hasRead(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let start = bytes.baseAddress, let first = readBuffer.baseAddress else { return false }
        return start >= first && start + bytes.count <= first + readBuffer.count
    }
}

internal import Bytes
internal import Glibc

/// The unsent output of a connection, in order.
///
/// Private bytes are copied in. Large shared bytes are referenced, so that a state of a megabyte for a thousand slow subscribers
/// is in memory once. An empty queue holds no memory.
struct WriteQueue {
    /// A contiguous buffer of private bytes.
    private final class Piece {
        /// Behind a pointer, so that it can be written to across calls; freed with the piece.
        let buffer = UnsafeMutablePointer<ByteBuffer>.allocate(capacity: 1)

        init() { buffer.initialize(to: ByteBuffer()) }

        deinit {
            buffer.deinitialize(count: 1)
            buffer.deallocate()
        }
    }

    /// An element of the queue.
    private enum Chunk {
        case own(Piece)
        case shared(SharedBytes)

        var bytes: UnsafeRawBufferPointer {
            switch self {
            case .own(let piece): piece.buffer.pointee.bytes
            case .shared(let shared): shared.bytes
            }
        }
    }

    private var chunks: [Chunk] = []
    /// The size of the last buffer when appending to it began.
    private var appendingFrom = 0
    /// The number of bytes of the first chunk that have been sent.
    private var sent = 0
    /// The number of unsent bytes.
    private(set) var count = 0
    /// The size of the shared pieces that are not completely sent.
    private(set) var sharedCount = 0
    /// The number of unsent private bytes.
    var ownCount: Int { max(0, count - sharedCount) }

    var isEmpty: Bool { count == 0 }
    /// The number of chunks.
    var pieceCount: Int { chunks.count }

    /// Returns the last buffer, to write to until `endAppending`.
    mutating func beginAppending() -> UnsafeMutablePointer<ByteBuffer> {
        let buffer = lastOwnPiece().buffer
        appendingFrom = buffer.pointee.count
        return buffer
    }

    mutating func endAppending() {
        guard case .own(let piece) = chunks.last else { return }
        count += piece.buffer.pointee.count - appendingFrom
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        beginAppending().pointee.append(bytes)
        endAppending()
    }

    mutating func append(_ shared: SharedBytes) {
        guard shared.count > 0 else { return }
        chunks.append(.shared(shared))
        count += shared.count
        sharedCount += shared.count
    }

    private mutating func lastOwnPiece() -> Piece {
        // A partly sent piece may still grow. A piece over 64 KiB does not, so that growing does not copy a long backlog.
        if case .own(let piece) = chunks.last, piece.buffer.pointee.count < 64 << 10 { return piece }
        let piece = Piece()
        chunks.append(.own(piece))
        return piece
    }

    /// Passes pieces to `send` until it accepts no more. `send` returns the number of accepted bytes or the negated error.
    ///
    /// - Returns: 0, or the error. EAGAIN is not an error.
    mutating func flush(_ send: (UnsafeMutableBufferPointer<iovec>) -> Int) -> Int32 {
        while count > 0 {
            let result = withUnsafeTemporaryAllocation(of: iovec.self, capacity: 32) { pieces in
                var used = 0
                for chunk in chunks.prefix(pieces.count) {
                    var bytes = chunk.bytes
                    if used == 0 { bytes = UnsafeRawBufferPointer(rebasing: bytes[sent...]) }
                    pieces[used] = iovec(
                        iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
                    used += 1
                }
                return send(UnsafeMutableBufferPointer(rebasing: pieces[..<used]))
            }
            if result < 0 {
                let error = Int32(-result)
                if error == EINTR { continue }
                return error == EAGAIN ? 0 : error
            }
            consume(result)
        }
        return 0
    }

    private mutating func consume(_ bytes: Int) {
        count -= bytes
        guard count > 0 else {
            chunks = []
            sent = 0
            sharedCount = 0
            return
        }
        sent += bytes
        var sentChunks = 0
        while sentChunks < chunks.count, sent >= chunks[sentChunks].bytes.count {
            sent -= chunks[sentChunks].bytes.count
            if case .shared(let shared) = chunks[sentChunks] { sharedCount -= shared.count }
            sentChunks += 1
        }
        chunks.removeFirst(sentChunks)
    }
}

internal import Bytes
internal import Glibc

/// Bytes of a connection that the socket did not take yet, in order.
///
/// Own bytes are copied in; large shared bytes are only referred to, so that a state of a megabyte behind a thousand
/// slow subscribers lies in memory once. Empty, it holds no memory.
struct WriteQueue {
    /// Own bytes gathered in one piece of memory.
    private final class Piece {
        /// Behind a pointer, so that it can be written to over a span of calls; freed with the piece.
        let buffer = UnsafeMutablePointer<ByteBuffer>.allocate(capacity: 1)

        init() { buffer.initialize(to: ByteBuffer()) }

        deinit {
            buffer.deinitialize(count: 1)
            buffer.deallocate()
        }
    }

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
    /// How much the buffer at the end held when it was begun to be written to.
    private var appendingFrom = 0
    /// Bytes of the first chunk that have been sent.
    private var sent = 0
    /// Bytes that wait.
    private(set) var count = 0
    /// Bytes of the shared pieces that are not sent to their end.
    private(set) var sharedCount = 0
    /// Bytes that wait and are ours alone.
    var ownCount: Int { max(0, count - sharedCount) }

    var isEmpty: Bool { count == 0 }
    /// Pieces that are held.
    var pieceCount: Int { chunks.count }

    /// The buffer at the end, to write to until `endAppending`.
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
        // A piece of which a part was sent may still grow; one over 64 KiB is left alone, so that growing does not copy
        // a long backlog.
        if case .own(let piece) = chunks.last, piece.buffer.pointee.count < 64 << 10 { return piece }
        let piece = Piece()
        chunks.append(.own(piece))
        return piece
    }

    /// Gives pieces to `send` as long as it takes them; it returns how many bytes it took or the negated error. 0, or the
    /// error (EAGAIN is none).
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
        var gone = 0
        while gone < chunks.count, sent >= chunks[gone].bytes.count {
            sent -= chunks[gone].bytes.count
            if case .shared(let shared) = chunks[gone] { sharedCount -= shared.count }
            gone += 1
        }
        chunks.removeFirst(gone)
    }
}

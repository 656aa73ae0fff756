internal import Bytes

/// Compressors and decompressors that all connections of one reactor share, created on demand. Confined to the reactor.
final class CompressionCodecs {
    private var deflaters: [Int: Deflater] = [:]
    private(set) lazy var inflater = Inflater()
    /// A buffer for compressed output; its memory is freed when it is large.
    var scratch = ByteBuffer()
    static let largestScratch = 256 << 10

    /// The number of bytes that may be compressed in one step of the reactor: about 1 ms of work.
    private static let bytesPerStep = 48 << 10
    /// The turn of the reactor in which messages were compressed last, and the number of bytes that it may still compress.
    private var turn = UInt64.max
    private var room = 0
    /// The number of pieces that were compressed separately.
    var pieceCount = 0

    /// Returns whether so many bytes may be compressed now, in this turn of the reactor, and counts them.
    func takeRoom(for bytes: Int, in turn: UInt64) -> Bool {
        if turn != self.turn { (self.turn, room) = (turn, Self.bytesPerStep) }
        guard bytes <= room else { return false }
        room -= bytes
        return true
    }

    func deflater(level: Int, windowBits: Int) -> Deflater {
        let key = level << 8 | windowBits
        if let deflater = deflaters[key] { return deflater }
        let deflater = Deflater(level: level, windowBits: windowBits)
        deflaters[key] = deflater
        return deflater
    }
}

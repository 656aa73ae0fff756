internal import Bytes

/// Compressors and decompressors that all connections of one reactor share, created on demand. Confined to the reactor.
final class CompressionCodecs {
    private var deflaters: [Int: Deflater] = [:]
    private(set) lazy var inflater = Inflater()
    /// A buffer for compressed output; its memory is freed when it is large.
    var scratch = ByteBuffer()
    static let largestScratch = 256 << 10

    func deflater(level: Int, windowBits: Int) -> Deflater {
        let key = level << 8 | windowBits
        if let deflater = deflaters[key] { return deflater }
        let deflater = Deflater(level: level, windowBits: windowBits)
        deflaters[key] = deflater
        return deflater
    }
}

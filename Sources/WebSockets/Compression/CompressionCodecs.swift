internal import Bytes

/// Compressors and decompressors that all connections of one reactor use in turn, made when they are first needed.
/// Confined to the reactor.
final class CompressionCodecs {
    private var deflaters: [Int: Deflater] = [:]
    private(set) lazy var inflater = Inflater()
    /// What is being compressed; a large one is not kept.
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

import Testing

@testable import WebSockets

@Suite("Masking (RFC 6455 §5.3)")
struct MaskingTests {
    private let key: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]

    private var word: UInt32 { key.withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) } }

    private func naive(_ bytes: [UInt8], offset: Int) -> [UInt8] {
        bytes.enumerated().map { $1 ^ key[($0 + offset) % 4] }
    }

    @Test("every alignment, length and offset matches the RFC's formula, and adjacent bytes stay unchanged")
    func agreesWithFormula() {
        for length in Array(0...200) + [255, 256, 257, 1000] {
            for alignment in 0..<8 {
                for offset in [0, 1, 2, 3, 4, 7, 1021] {
                    let plain = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ alignment) }
                    var memory = [UInt8](repeating: 0xEE, count: alignment) + plain + [0xEE, 0xEE]
                    memory.withUnsafeMutableBytes {
                        _ = Masking.apply(
                            word, offset: offset,
                            to: UnsafeMutableRawBufferPointer(rebasing: $0[alignment..<(alignment + length)]))
                    }
                    let expected =
                        [UInt8](repeating: 0xEE, count: alignment) + naive(plain, offset: offset) + [0xEE, 0xEE]
                    #expect(memory == expected, "length \(length), alignment \(alignment), offset \(offset)")
                }
            }
        }
    }

    @Test("masking into another buffer has the same result, and leaves its source unchanged")
    func elsewhere() {
        for length in Array(0...200) + [255, 256, 257, 1000] {
            let plain = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ 5) & 0x7F }
            for (from, to) in [(0, 0), (1, 0), (0, 3), (5, 2), (7, 7)] {
                for offset in [0, 1, 2, 3, 1021] {
                    let masked = [UInt8](repeating: 0xEE, count: from) + naive(plain, offset: offset)
                    var memory = [UInt8](repeating: 0xEE, count: to + length + 2)
                    let isOther = masked.withUnsafeBytes { source in
                        memory.withUnsafeMutableBytes {
                            Masking.apply(
                                word, offset: offset, UnsafeRawBufferPointer(rebasing: source[from...]),
                                to: $0.baseAddress! + to)
                        }
                    }
                    let around = [UInt8](repeating: 0xEE, count: to)
                    #expect(
                        memory == around + plain + [0xEE, 0xEE], "length \(length), \(from) to \(to), offset \(offset)")
                    #expect(!isOther)
                }
            }
        }
    }

    @Test("the result reports a non-ASCII byte at any position")
    func reportsNonASCII() {
        for length in [1, 7, 8, 9, 31, 32, 33, 64, 75, 96, 97, 128] {
            var plain = naive([UInt8](repeating: 0x61, count: length), offset: 0)
            #expect(!plain.withUnsafeMutableBytes { Masking.apply(word, to: $0) })
            for place in 0..<length {
                var text = [UInt8](repeating: 0x61, count: length)
                text[place] = 0x80
                var masked = naive(text, offset: 0)
                #expect(masked.withUnsafeMutableBytes { Masking.apply(word, to: $0) }, "\(place) of \(length)")
            }
        }
    }
}

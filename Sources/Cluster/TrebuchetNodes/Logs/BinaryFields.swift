/// The binary encoding of numbers, texts and bytes between nodes and in the coordination store. Numbers are little-endian; texts
/// and bytes follow their length in four bytes.
enum BinaryFields {
    static func append(_ number: some FixedWidthInteger, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: number.littleEndian) { bytes += $0 }
    }

    static func append(_ part: some Collection<UInt8>, to bytes: inout [UInt8]) {
        append(UInt32(part.count), to: &bytes)
        bytes += part
    }

    /// Removes and returns a number; nil when there are too few bytes.
    static func number<Number: FixedWidthInteger>(_: Number.Type, _ bytes: inout ArraySlice<UInt8>) -> Number? {
        let count = MemoryLayout<Number>.size
        guard bytes.count >= count else { return nil }
        defer { bytes = bytes.dropFirst(count) }
        return Number(littleEndian: bytes.withUnsafeBytes { $0.loadUnaligned(as: Number.self) })
    }

    static func bytes(_ bytes: inout ArraySlice<UInt8>) -> [UInt8]? {
        guard let count = number(UInt32.self, &bytes), bytes.count >= Int(count) else { return nil }
        defer { bytes = bytes.dropFirst(Int(count)) }
        return Array(bytes.prefix(Int(count)))
    }

    static func text(_ bytes: inout ArraySlice<UInt8>) -> String? {
        self.bytes(&bytes).map { String(decoding: $0, as: UTF8.self) }
    }
}

extension StringProtocol {
    /// Its beginning, of at most so many bytes of UTF-8: whole scalars, none of which is changed.
    ///
    /// For each text of somebody else's that is kept, shown or sent back. `prefix(_:)` is no limit for these: it counts characters, and one
    /// character may have any number of scalars.
    package func prefix(bytes count: Int) -> String {
        let bytes = Array(utf8.prefix(count + 1))
        guard bytes.count > count else { return String(self) }
        var end = count
        // Back to where a scalar begins.
        while end > 0, bytes[end] & 0xC0 == 0x80 { end -= 1 }
        return String(decoding: bytes[..<end], as: UTF8.self)
    }
}

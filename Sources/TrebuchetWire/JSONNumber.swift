/// Whole numbers of JSON.
enum JSONNumber {
    /// The number, when the bytes are one without fraction and exponent that fits; nil otherwise.
    static func int(_ bytes: UnsafeRawBufferPointer) -> Int? {
        var at = 0
        let isNegative = bytes.first == 0x2D
        if isNegative { at = 1 }
        let digits = bytes.count - at
        // Eighteen digits always fit; a number that begins with 0 is just 0.
        guard digits > 0, digits <= 18, bytes[at] != 0x30 || digits == 1 else { return nil }
        var value = 0
        while at < bytes.count {
            let digit = bytes[at] &- 0x30
            guard digit < 10 else { return nil }
            value = value &* 10 &+ Int(digit)
            at += 1
        }
        return isNegative ? -value : value
    }
}

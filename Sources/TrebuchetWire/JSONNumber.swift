internal import Bytes

/// Numbers of JSON.
package enum JSONNumber {
    /// Writes a finite number, with no more digits than it is told from others by; a whole one below 2^53 without a fraction.
    static func append(_ value: Double, to buffer: inout ByteBuffer) {
        if let whole = Int64(exactly: value), whole.magnitude < 1 << 53, whole != 0 || value.sign == .plus {
            buffer.append(decimal: whole)
        } else {
            buffer.append(utf8: value.description)
        }
    }

    static func append(_ value: Float, to buffer: inout ByteBuffer) {
        if let whole = Int32(exactly: value), whole.magnitude < 1 << 24, whole != 0 || value.sign == .plus {
            buffer.append(decimal: Int64(whole))
        } else {
            buffer.append(utf8: value.description)
        }
    }

    /// The number, when the bytes are one without fraction and exponent that fits; nil otherwise.
    package static func int(_ bytes: UnsafeRawBufferPointer) -> Int? {
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

    /// Whether two numbers that have been checked are worth the same, as `1`, `1.0` and `10e-1` are.
    static func isEqual(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Bool {
        guard let one = parts(one), let other = parts(other) else { return one.elementsEqual(other) }
        return one == other
    }

    /// A number as digits without zeros at either end, and the power of ten that they are multiplied by; nil when that
    /// power is beyond all sense.
    static func parts(
        _ bytes: UnsafeRawBufferPointer
    ) -> (isNegative: Bool, digits: [UInt8], exponent: Int)? {
        var digits: [UInt8] = []
        var exponent = 0
        var at = bytes.first == 0x2D ? 1 : 0
        var isFraction = false
        while at < bytes.count, bytes[at] | 0x20 != 0x65 {
            if bytes[at] == 0x2E {
                isFraction = true
            } else {
                if bytes[at] != 0x30 || !digits.isEmpty { digits.append(bytes[at]) }
                if isFraction { exponent -= 1 }
            }
            at += 1
        }
        guard !digits.isEmpty else { return (false, [], 0) }
        while digits.last == 0x30 {
            digits.removeLast()
            exponent += 1
        }
        guard at < bytes.count else { return (bytes[0] == 0x2D, digits, exponent) }
        at += 1
        let isMinus = bytes[at] == 0x2D
        if isMinus || bytes[at] == 0x2B { at += 1 }
        var power = 0
        while at < bytes.count {
            power = power * 10 + Int(bytes[at] &- 0x30)
            guard power < 1 << 48 else { return nil }
            at += 1
        }
        return (bytes[0] == 0x2D, digits, exponent + (isMinus ? -power : power))
    }
}

internal import Bytes

/// Numbers in JSON.
package enum JSONNumber {
    /// Appends a finite number with the fewest digits that identify it; an integer below 2^53 without a fraction.
    static func append(_ value: Double, to buffer: inout ByteBuffer) {
        if let whole = Int64(exactly: value), whole.magnitude < 1 << 53, whole != 0 || value.sign == .plus {
            buffer.append(decimal: whole)
        } else if !appendShort(value, to: &buffer) {
            buffer.append(utf8: value.description)
        }
    }

    /// Appends a number with up to six decimal places, such as a price or a measure; false for any other.
    ///
    /// Two numbers of at most fifteen digits are never the same `Double`. A quotient that equals the value is therefore its form
    /// with this number of digits, and the first one is the shortest.
    private static func appendShort(_ value: Double, to buffer: inout ByteBuffer) -> Bool {
        let magnitude = value.magnitude
        guard magnitude >= 1e-3, magnitude < 1e9 else { return false }
        for digitCount in 1...6 {
            let power = powersOfTen[digitCount]
            let digits = (magnitude * power).rounded()
            guard digits / power == magnitude else { continue }
            let (whole, fraction) = Int64(digits).quotientAndRemainder(dividingBy: Int64(power))
            if value < 0 { buffer.append(0x2D) }
            buffer.append(decimal: whole)
            buffer.append(count: digitCount + 1) { target in
                target[0] = 0x2E
                var rest = fraction
                for index in stride(from: digitCount, to: 0, by: -1) {
                    target[index] = UInt8(truncatingIfNeeded: rest % 10) &+ 0x30
                    rest /= 10
                }
            }
            return true
        }
        return false
    }

    static func append(_ value: Float, to buffer: inout ByteBuffer) {
        if let whole = Int32(exactly: value), whole.magnitude < 1 << 24, whole != 0 || value.sign == .plus {
            buffer.append(decimal: Int64(whole))
        } else {
            buffer.append(utf8: value.description)
        }
    }

    /// Returns the number if the bytes are an integer without exponent that fits; otherwise nil.
    package static func int(_ bytes: UnsafeRawBufferPointer) -> Int? {
        var at = 0
        let isNegative = bytes.first == 0x2D
        if isNegative { at = 1 }
        let digits = bytes.count - at
        // Eighteen digits always fit; a number that starts with 0 has one digit.
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

    /// Returns the number of a few digits; nil for other text.
    static func digits(_ bytes: UnsafeRawBufferPointer) -> Int? {
        var value = 0
        for byte in bytes {
            guard byte &- 0x30 < 10 else { return nil }
            value = value &* 10 &+ Int(byte &- 0x30)
        }
        return value
    }

    // MARK: Validated numbers

    /// Returns the number as an integer type; nil if it has a non-zero fraction or does not fit.
    static func integer<Integer: FixedWidthInteger>(
        _ type: Integer.Type, _ bytes: UnsafeRawBufferPointer
    ) -> Integer? {
        guard let parts = parts(bytes), parts.exponent >= 0 else { return nil }
        guard !parts.digits.isEmpty else { return 0 }
        // No integer type has so many digits.
        guard parts.digits.count + parts.exponent <= 40 else { return nil }
        var value: Integer = 0
        for index in 0..<parts.digits.count + parts.exponent {
            let digit = index < parts.digits.count ? Integer(truncatingIfNeeded: parts.digits[index] &- 0x30) : 0
            let (tens, isTooLarge) = value.multipliedReportingOverflow(by: 10)
            // Negative numbers are accumulated as such, because the minimum has no positive counterpart.
            let (sum, isTooMuch) =
                parts.isNegative ? tens.subtractingReportingOverflow(digit) : tens.addingReportingOverflow(digit)
            guard !isTooLarge, !isTooMuch else { return nil }
            value = sum
        }
        return value
    }

    /// Returns the number if its digits are so few that it is an exact quotient or product; otherwise nil.
    static func shortDouble(_ bytes: UnsafeRawBufferPointer) -> Double? {
        let isNegative = bytes[0] == 0x2D
        var at = isNegative ? 1 : 0
        guard bytes.count - at <= 16 else { return nil }
        var digits: Int64 = 0
        var fraction = 0
        var isFraction = false
        while at < bytes.count {
            let digit = bytes[at] &- 0x30
            if digit < 10 {
                digits = digits &* 10 &+ Int64(digit)
                if isFraction { fraction &+= 1 }
            } else if bytes[at] == 0x2E {
                isFraction = true
            } else {
                return nil
            }
            at &+= 1
        }
        guard digits < 1 << 53 else { return nil }
        let value = isFraction ? Double(digits) / powersOfTen[fraction] : Double(digits)
        return isNegative ? -value : value
    }

    static let powersOfTen: [Double] = (0...15).map { Double("1e\($0)")! }

    /// Returns the nearest number; nil if that is infinite, or 0 for a number that is not.
    static func double(_ bytes: UnsafeRawBufferPointer) -> Double? {
        let value = Double(String(decoding: bytes, as: UTF8.self))
        guard let value, value.isFinite, value != 0 || isZero(bytes) else { return nil }
        return value
    }

    static func float(_ bytes: UnsafeRawBufferPointer) -> Float? {
        let value = Float(String(decoding: bytes, as: UTF8.self))
        guard let value, value.isFinite, value != 0 || isZero(bytes) else { return nil }
        return value
    }

    private static func isZero(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.prefix { $0 | 0x20 != 0x65 }.allSatisfy { !(0x31...0x39).contains($0) }
    }

    /// Returns whether two validated numbers have the same value, such as `1`, `1.0` and `10e-1`.
    static func isEqual(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Bool {
        guard let one = parts(one), let other = parts(other) else { return one.elementsEqual(other) }
        return one == other
    }

    /// Returns a number as digits without leading and trailing zeros, and a power of ten; nil if the power is out of range.
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

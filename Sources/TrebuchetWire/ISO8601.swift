package import Bytes

/// Dates as the protocol writes them: `2026-01-31T23:59:59.123Z`, always UTC.
package enum ISO8601 {
    /// Writes a date; without milliseconds when they are nil. Years are 0000 to 9999.
    package static func append(seconds: Int64, milliseconds: Int?, to buffer: inout ByteBuffer) {
        let (days, second) = seconds.flooredQuotientAndRemainder(by: 86_400)
        let (year, month, day) = civil(fromDays: days)
        append(year, 4, &buffer)
        buffer.append(0x2D)
        append(month, 2, &buffer)
        buffer.append(0x2D)
        append(day, 2, &buffer)
        buffer.append(0x54)
        append(second / 3600, 2, &buffer)
        buffer.append(0x3A)
        append(second / 60 % 60, 2, &buffer)
        buffer.append(0x3A)
        append(second % 60, 2, &buffer)
        if let milliseconds {
            buffer.append(0x2E)
            append(Int64(milliseconds), 3, &buffer)
        }
        buffer.append(0x5A)
    }

    /// Seconds since 1970 of a date with or without a fraction, with `Z` or an offset (`+02:00`); nil when it is none.
    package static func seconds(_ text: String) -> Double? {
        var text = text
        return text.withUTF8 { seconds(UnsafeRawBufferPointer($0)) }
    }

    /// The same, of UTF-8.
    static func seconds(_ text: UnsafeRawBufferPointer) -> Double? {
        var at = 0
        func digits(_ count: Int) -> Int64? {
            guard text.count - at >= count else { return nil }
            var value: Int64 = 0
            for _ in 0..<count {
                let digit = text[at] &- 0x30
                guard digit < 10 else { return nil }
                value = value * 10 + Int64(digit)
                at += 1
            }
            return value
        }
        func mark(_ byte: UInt8) -> Bool {
            guard at < text.count, text[at] == byte || text[at] == byte | 0x20 else { return false }
            at += 1
            return true
        }
        guard let year = digits(4), mark(0x2D), let month = digits(2), mark(0x2D), let day = digits(2), mark(0x54),
            let hour = digits(2), mark(0x3A), let minute = digits(2), mark(0x3A), let second = digits(2),
            (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60, second <= 60
        else { return nil }
        var fraction = 0.0
        if mark(0x2E) {
            let start = at
            while at < text.count, text[at] &- 0x30 < 10 { at += 1 }
            guard at > start else { return nil }
            fraction = Self.fraction(UnsafeRawBufferPointer(rebasing: text[start..<at]))
        }
        var offset: Int64 = 0
        if !mark(0x5A) {
            guard at < text.count, text[at] == 0x2B || text[at] == 0x2D else { return nil }
            let sign: Int64 = text[at] == 0x2B ? 1 : -1
            at += 1
            guard let hours = digits(2), hours < 24 else { return nil }
            _ = mark(0x3A)
            guard let minutes = digits(2), minutes < 60 else { return nil }
            offset = sign * (hours * 3600 + minutes * 60)
        }
        guard at == text.count, civil(fromDays: days(year, month, day)) == (year, month, day) else { return nil }
        return Double(days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset) + fraction
    }

    private static func fraction(_ digits: UnsafeRawBufferPointer) -> Double {
        // Milliseconds, which all of ours are: both numbers are exact, so that the quotient is the nearest one.
        if digits.count == 3, let thousandths = JSONNumber.digits(digits) { return Double(thousandths) / 1000 }
        return Double("0." + String(decoding: digits, as: UTF8.self)) ?? 0
    }

    private static func append(_ value: Int64, _ digits: Int, _ buffer: inout ByteBuffer) {
        buffer.append(count: digits) { target in
            var rest = value
            for index in stride(from: digits - 1, through: 0, by: -1) {
                target[index] = UInt8(truncatingIfNeeded: rest % 10) &+ 0x30
                rest /= 10
            }
        }
    }

    // Days of the proleptic Gregorian calendar, counted in years that begin in March so that the leap day comes last.

    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let (era, yearOfEra) = shifted.flooredQuotientAndRemainder(by: 400)
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func civil(fromDays days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let (era, dayOfEra) = (days + 719_468).flooredQuotientAndRemainder(by: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }
}

extension Int64 {
    fileprivate func flooredQuotientAndRemainder(by divisor: Int64) -> (Int64, Int64) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}

package import Bytes

/// The date format of the protocol: `2026-01-31T23:59:59.123Z`, always UTC.
package enum ISO8601 {
    /// Appends a date, without milliseconds if they are nil. Years are 0000 to 9999.
    package static func append(seconds: Int64, milliseconds: Int?, to buffer: inout ByteBuffer) {
        let (days, second) = seconds.flooredQuotientAndRemainder(by: 86_400)
        let (year, month, day) = civil(fromDays: days)
        buffer.append(count: milliseconds == nil ? 20 : 24) { target in
            put(year / 100, target, 0)
            put(year % 100, target, 2)
            target[4] = 0x2D
            put(month, target, 5)
            target[7] = 0x2D
            put(day, target, 8)
            target[10] = 0x54
            put(second / 3600, target, 11)
            target[13] = 0x3A
            put(second / 60 % 60, target, 14)
            target[16] = 0x3A
            put(second % 60, target, 17)
            guard let milliseconds else { return target[19] = 0x5A }
            target[19] = 0x2E
            target[20] = UInt8(truncatingIfNeeded: milliseconds / 100) &+ 0x30
            put(Int64(milliseconds % 100), target, 21)
            target[23] = 0x5A
        }
    }

    /// Writes two digits.
    @inline(__always)
    private static func put(_ value: Int64, _ target: UnsafeMutablePointer<UInt8>, _ at: Int) {
        target[at] = UInt8(truncatingIfNeeded: value / 10) &+ 0x30
        target[at + 1] = UInt8(truncatingIfNeeded: value % 10) &+ 0x30
    }

    /// Returns the seconds since 1970 of a date with or without a fraction, with `Z` or an offset (`+02:00`); nil for other text.
    package static func seconds(_ text: String) -> Double? {
        var text = text
        return text.withUTF8 { seconds(UnsafeRawBufferPointer($0)) }
    }

    /// Returns the seconds since 1970 of a date in UTF-8.
    static func seconds(_ text: UnsafeRawBufferPointer) -> Double? { ownSeconds(text) ?? anySeconds(text) }

    /// Returns the seconds of a date as written by `append`; nil for any other text.
    private static func ownSeconds(_ text: UnsafeRawBufferPointer) -> Double? {
        guard text.count == 24 || text.count == 20, text[4] == 0x2D, text[7] == 0x2D, text[10] == 0x54,
            text[13] == 0x3A, text[16] == 0x3A, text[text.count - 1] == 0x5A
        else { return nil }
        // Returns at least 100 for characters that are no digits.
        @inline(__always)
        func two(_ at: Int) -> Int64 {
            let (tens, ones) = (text[at] &- 0x30, text[at + 1] &- 0x30)
            return tens < 10 && ones < 10 ? Int64(tens) * 10 + Int64(ones) : 100
        }
        let (century, years, month, day) = (two(0), two(2), two(5), two(8))
        let (hour, minute, second) = (two(11), two(14), two(17))
        // Days 29 to 31 are left to the general parser, which checks the length of the month.
        guard century < 100, years < 100, month > 0, month < 13, day > 0, day < 29, hour < 24, minute < 60, second <= 60
        else { return nil }
        var fraction = 0.0
        if text.count == 24 {
            let (hundreds, rest) = (text[20] &- 0x30, two(21))
            guard text[19] == 0x2E, hundreds < 10, rest < 100 else { return nil }
            fraction = Double(Int64(hundreds) * 100 + rest) / 1000
        }
        let ofDay = hour * 3600 + minute * 60 + second
        return Double(days(century * 100 + years, month, day) * 86_400 + ofDay) + fraction
    }

    private static func anySeconds(_ text: UnsafeRawBufferPointer) -> Double? {
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
        // Milliseconds, the usual form: both numbers are exact, so the quotient is correctly rounded.
        if digits.count == 3, let thousandths = JSONNumber.digits(digits) { return Double(thousandths) / 1000 }
        return Double("0." + String(decoding: digits, as: UTF8.self)) ?? 0
    }

    // Days of the proleptic Gregorian calendar, counted in years that start in March, so that the leap day is last.

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

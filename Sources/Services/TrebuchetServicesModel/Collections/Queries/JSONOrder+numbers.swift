/// The equality of canonical texts whose numbers may be written in several ways.
extension JSONOrder {
    /// Returns whether two values are equal when equal numbers may have different texts.
    static func areEqualValues(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Bool {
        var (left, right) = (one, other)
        while true {
            let at = CanonicalJSON.firstDifference(left, right)
            if at == left.count, at == right.count { return true }
            var start = at
            while start > 0, isInNumber(left[start - 1]) { start -= 1 }
            let (one, other) = (number(at: start, left), number(at: start, right))
            guard !one.isEmpty, !other.isEmpty, !isInString(start, left),
                compare(try? JSONValue.scalar(one), try? JSONValue.scalar(other)) == 0
            else { return false }
            left = UnsafeRawBufferPointer(rebasing: left[(start + one.count)...])
            right = UnsafeRawBufferPointer(rebasing: right[(start + other.count)...])
        }
    }

    /// Returns whether a byte may be part of a number in a canonical text.
    static func isInNumber(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "e"):
            true
        default: false
        }
    }

    /// Returns the text of the number that begins at an index; empty for another value.
    private static func number(at start: Int, _ text: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let rest = UnsafeRawBufferPointer(rebasing: text[start...])
        guard let first = rest.first, first == UInt8(ascii: "-") || first &- UInt8(ascii: "0") < 10 else {
            return UnsafeRawBufferPointer(rebasing: rest[..<0])
        }
        return UnsafeRawBufferPointer(rebasing: rest[..<(rest.firstIndex { !isInNumber($0) } ?? rest.count)])
    }

    /// Returns whether an index is within a string. The text begins outside of strings.
    private static func isInString(_ index: Int, _ text: UnsafeRawBufferPointer) -> Bool {
        var at = 0
        while at < index {
            at = text[at] == UInt8(ascii: "\"") ? CanonicalJSON.endOfString(at, text) : at + 1
        }
        return at > index
    }
}

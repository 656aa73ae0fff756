internal import Bytes

/// Removes duplicate names of an object. The last member counts, because it was meant to overwrite the others.
enum DuplicateNames {
    /// Removes the earlier members in JSON at the end of a buffer.
    static func removeAll(from buffer: inout ByteBuffer, startingAt start: Int) {
        let text = Array(buffer.bytes[start...])
        let removedRanges = text.withUnsafeBytes { bytes in
            var search = Search(cursor: JSONCursor(bytes))
            // Invalid JSON cannot come from a writer; it stays unchanged.
            return (try? search.value()) == nil ? [] : search.removedRanges
        }
        guard !removedRanges.isEmpty else { return }
        buffer.truncate(to: start)
        var copied = 0
        // Cuts may be nested, because an object is searched before it is cut itself.
        for cut in removedRanges.sorted(by: { $0.lowerBound < $1.lowerBound }) where cut.upperBound > copied {
            if cut.lowerBound > copied { buffer.append(Array(text[copied..<cut.lowerBound])) }
            copied = cut.upperBound
        }
        buffer.append(Array(text[copied...]))
    }

    /// The search for ranges to cut.
    private struct Search {
        var cursor: JSONCursor
        var removedRanges: [Range<Int>] = []

        mutating func value() throws(EnvelopeError) {
            var isFirst = true
            switch cursor.peek() {
            case UInt8(ascii: "["):
                cursor.at += 1
                while try cursor.hasElement(&isFirst) { try value() }
            case UInt8(ascii: "{"):
                cursor.at += 1
                try members()
            default: _ = try cursor.value()
            }
        }

        private mutating func members() throws(EnvelopeError) {
            var isFirst = true
            var names: [ByteRange] = []
            var starts: [Int] = []
            while let name = try cursor.name(&isFirst) {
                names.append(name)
                starts.append(Int(name.offset) - 1)
                try value()
            }
            var table = NameTable(capacity: names.count)
            // Backwards, because the last member stays. A cut includes the comma behind the member.
            for index in names.indices.reversed() {
                let retained = table.insert(cursor.bytes(names[index]), index) { cursor.bytes(names[$0]) }
                if retained != index { removedRanges.append(starts[index]..<starts[index + 1]) }
            }
        }
    }
}

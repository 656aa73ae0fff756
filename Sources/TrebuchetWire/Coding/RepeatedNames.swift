internal import Bytes

/// Names that an object has more than once: the last one counts, as whoever wrote it meant to write over the others.
enum RepeatedNames {
    /// Takes the others out of JSON that is at the end of a buffer.
    static func removeAll(from buffer: inout ByteBuffer, startingAt start: Int) {
        let text = Array(buffer.bytes[start...])
        let cuts = text.withUnsafeBytes { bytes in
            var search = Search(cursor: JSONCursor(bytes))
            // What is no JSON is not what a writer writes; then it stays as it is.
            return (try? search.value()) == nil ? [] : search.cuts
        }
        guard !cuts.isEmpty else { return }
        buffer.truncate(to: start)
        var taken = 0
        // Cuts may lie within each other: an object is looked through before it is cut out itself.
        for cut in cuts.sorted(by: { $0.lowerBound < $1.lowerBound }) where cut.upperBound > taken {
            if cut.lowerBound > taken { buffer.append(Array(text[taken..<cut.lowerBound])) }
            taken = cut.upperBound
        }
        buffer.append(Array(text[taken...]))
    }

    private struct Search {
        var cursor: JSONCursor
        var cuts: [Range<Int>] = []

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
            // From the last one on, since that is the one that stays. A cut takes the comma behind a member along.
            for index in names.indices.reversed() {
                let kept = table.insert(cursor.bytes(names[index]), index) { cursor.bytes(names[$0]) }
                if kept != index { cuts.append(starts[index]..<starts[index + 1]) }
            }
        }
    }
}

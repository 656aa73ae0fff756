/// What is done together and is more than an engine takes as one entry stands in several, one behind the other: one byte of version, the
/// number of the part and how many there are in four bytes each, and the part. It counts when the last of them is there: parts
/// whose owner came to no end with them are passed over.
struct EntryParts {
    /// Of an entry that is whole, or of a part: every engine takes so much.
    static let partBytes = 512 << 10
    private static let version: UInt8 = 2

    private var gathered: [UInt8] = []
    private var count: UInt32 = 0
    private var next: UInt32 = 0

    /// An entry as the engine gets it.
    static func split(_ entry: [UInt8]) -> [[UInt8]] {
        guard entry.count > partBytes else { return [entry] }
        let starts = Array(stride(from: 0, to: entry.count, by: partBytes))
        return starts.enumerated().map { index, start in
            var part = [version]
            ByteParts.append(UInt32(index), to: &part)
            ByteParts.append(UInt32(starts.count), to: &part)
            part += entry[start..<min(start + partBytes, entry.count)]
            return part
        }
    }

    /// Whether it is a part behind which others have to stand.
    static func isFollowed(_ bytes: [UInt8]) -> Bool {
        var rest = bytes.dropFirst()
        guard bytes.first == version, let index = ByteParts.number(UInt32.self, &rest),
            let count = ByteParts.number(UInt32.self, &rest)
        else { return false }
        return index + 1 < count
    }

    /// Takes what an engine has, in its order.
    ///
    /// - Returns: an entry that is whole with it; nil for a part that others follow.
    mutating func take(_ bytes: [UInt8]) -> [UInt8]? {
        guard bytes.first == Self.version else {
            self = EntryParts()
            return bytes
        }
        var rest = bytes.dropFirst()
        guard let index = ByteParts.number(UInt32.self, &rest), let count = ByteParts.number(UInt32.self, &rest) else {
            self = EntryParts()
            return bytes
        }
        if index == 0 { (gathered, self.count, next) = ([], count, 0) }
        guard index == next, count == self.count else {
            self = EntryParts()
            return nil
        }
        gathered += rest
        next += 1
        guard next == count else { return nil }
        defer { self = EntryParts() }
        return gathered
    }
}

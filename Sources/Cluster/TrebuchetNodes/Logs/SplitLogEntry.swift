/// Splits an entry that is too large for the coordination store into consecutive parts. Each part has one version byte, its number
/// and the number of parts in four bytes each, and its data. The entry counts when its last part is stored; incomplete entries are
/// ignored.
struct SplitLogEntry {
    /// The maximum size of a whole entry or of a part, which every coordination store accepts.
    static let partBytes = 512 << 10
    private static let version: UInt8 = 2

    private var gathered: [UInt8] = []
    private var count: UInt32 = 0
    private var next: UInt32 = 0

    /// Returns the entries to append for an entry.
    static func split(_ entry: [UInt8]) -> [[UInt8]] {
        guard entry.count > partBytes else { return [entry] }
        let starts = Array(stride(from: 0, to: entry.count, by: partBytes))
        return starts.enumerated().map { index, start in
            var part = [version]
            BinaryFields.append(UInt32(index), to: &part)
            BinaryFields.append(UInt32(starts.count), to: &part)
            part += entry[start..<min(start + partBytes, entry.count)]
            return part
        }
    }

    /// Returns whether the bytes are a part that others must follow.
    static func isFollowed(_ bytes: [UInt8]) -> Bool {
        var rest = bytes.dropFirst()
        guard bytes.first == version, let index = BinaryFields.number(UInt32.self, &rest),
            let count = BinaryFields.number(UInt32.self, &rest)
        else { return false }
        return index + 1 < count
    }

    /// Processes the entries of a log in order.
    ///
    /// - Returns: The entry that is complete with these bytes; nil for a part that others follow.
    mutating func append(_ bytes: [UInt8]) -> [UInt8]? {
        guard bytes.first == Self.version else {
            self = SplitLogEntry()
            return bytes
        }
        var rest = bytes.dropFirst()
        guard let index = BinaryFields.number(UInt32.self, &rest), let count = BinaryFields.number(UInt32.self, &rest)
        else {
            self = SplitLogEntry()
            return bytes
        }
        if index == 0 { (gathered, self.count, next) = ([], count, 0) }
        guard index == next, count == self.count else {
            self = SplitLogEntry()
            return nil
        }
        gathered += rest
        next += 1
        guard next == count else { return nil }
        defer { self = SplitLogEntry() }
        return gathered
    }
}

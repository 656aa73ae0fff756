import TrebuchetRedis

/// Answers of a Redis server: what is read does not depend on how the network cuts the bytes, and little is kept.
enum RESPFuzz {
    /// The first byte chooses the cut, the rest is the connection.
    static func run(_ input: [UInt8]) {
        guard let choice = input.first else { return }
        let bytes = Array(input.dropFirst())
        let whole = values(bytes, piece: bytes.count)
        let cut = values(bytes, piece: 1 + Int(choice) % 17)
        precondition(whole == cut, "in one piece \(whole), cut \(cut)")
    }

    private static func values(_ bytes: [UInt8], piece: Int) -> [String] {
        var limits = RESPLimits()
        limits.lineBytes = 64
        limits.bulkBytes = 128
        limits.answerBytes = 256
        limits.elements = 32
        limits.depth = 4
        var parser = RESPParser(limits: limits)
        var found: [String] = []
        var at = 0
        while at < bytes.count {
            let part = Array(bytes[at..<min(bytes.count, at + max(1, piece))])
            at += part.count
            let isOver = part.withUnsafeBytes { part in
                var rest = part
                do {
                    // By their text, in which one NaN is like another.
                    while let value = try parser.next(&rest) { found.append("\(value)") }
                    precondition(rest.isEmpty, "bytes were left although more were wanted")
                    return false
                } catch {
                    found.append("\(error)")
                    return true
                }
            }
            precondition(parser.bufferedCount <= limits.bulkBytes + 2 + limits.elements, "\(parser.bufferedCount) are kept")
            if isOver { break }
        }
        return found
    }
}

import TrebuchetRedis

/// Responses of a Redis server: the result does not depend on how the network splits the bytes, and little is buffered.
enum RESPFuzz {
    /// The first byte selects the split, the rest is the connection.
    static func run(_ input: [UInt8]) {
        guard let choice = input.first else { return }
        let bytes = Array(input.dropFirst())
        let whole = values(bytes, piece: bytes.count)
        let cut = values(bytes, piece: 1 + Int(choice) % 17)
        precondition(whole == cut, "in one piece \(whole), split \(cut)")
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
                    // Compared as text, since NaN does not equal itself.
                    while let value = try parser.next(&rest) { found.append("\(value)") }
                    precondition(rest.isEmpty, "the parser requests more bytes, but leaves some unread")
                    return false
                } catch {
                    found.append("\(error)")
                    return true
                }
            }
            precondition(
                parser.bufferedCount <= limits.bulkBytes + 2 + limits.elements, "\(parser.bufferedCount) are kept")
            if isOver { break }
        }
        return found
    }
}

/// Bytes in the notation of a schedule: literal, except for `%41` (a byte), `<ab*1000>` (repeated; may be nested), `#` (the number of
/// messages that this connection has started) and `@` (the connection's name at the server).
struct StepText: Equatable, Sendable, CustomStringConvertible {
    /// Without spaces and apostrophes, so that a schedule is a valid shell word list.
    var description: String

    init(_ source: String) { description = source }

    /// A literal text.
    init(quoting text: String) { self.init(quoting: Array(text.utf8)) }

    init(quoting bytes: [UInt8]) {
        var source = ""
        for byte in bytes {
            if byte > 0x20, byte < 0x7F, !Self.special.contains(byte) {
                source.unicodeScalars.append(UnicodeScalar(byte))
            } else {
                source += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        description = source
    }

    /// `count` times the text.
    func repeated(_ count: Int) -> StepText { StepText("<\(self)*\(count)>") }

    static func + (left: StepText, right: StepText) -> StepText { StepText(left.description + right.description) }

    /// The bytes, with these values for `#` and `@`. At most 32 MiB, so that a schedule cannot exhaust this program's memory.
    func bytes(number: Int, session: [UInt8] = []) -> [UInt8] {
        var output: [UInt8] = []
        var rest = Array(description.utf8)[...]
        Self.expand(&rest, into: &output, Array(String(number).utf8), session, isGroup: false)
        return output
    }

    private static let special: Set<UInt8> = Set(#"%<>*#@|'"#.utf8)
    private static let largest = 32 << 20

    private static func expand(
        _ rest: inout ArraySlice<UInt8>, into output: inout [UInt8], _ number: [UInt8], _ session: [UInt8],
        isGroup: Bool
    ) {
        while let byte = rest.first {
            switch byte {
            case UInt8(ascii: "%"):
                let digits = String(decoding: rest.dropFirst().prefix(2), as: UTF8.self)
                rest = rest.dropFirst(3)
                output.append(UInt8(digits, radix: 16) ?? 0x3F)
            case UInt8(ascii: "#"):
                rest = rest.dropFirst()
                output += number
            case UInt8(ascii: "@"):
                rest = rest.dropFirst()
                output += session
            case UInt8(ascii: "<"):
                rest = rest.dropFirst()
                let start = output.count
                expand(&rest, into: &output, number, session, isGroup: true)
                let body = Array(output[start...])
                let digits = rest.dropFirst().prefix { $0 != UInt8(ascii: ">") }
                rest = rest.dropFirst(digits.count + 2)
                output.removeSubrange(start...)
                let count = Int(String(decoding: digits, as: UTF8.self)) ?? 1
                output.reserveCapacity(min(largest, start + body.count * count))
                for _ in 0..<count where output.count + body.count <= largest { output += body }
            case UInt8(ascii: "*") where isGroup:
                return
            default:
                rest = rest.dropFirst()
                output.append(byte)
            }
        }
    }
}

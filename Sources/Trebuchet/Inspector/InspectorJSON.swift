/// What the inspector shows, as JSON.
///
/// In none of it stands what a browser could take for markup, also where a name or a state has it: `<`, `>` and `&` are escaped.
enum InspectorJSON: Sendable {
    case null
    case flag(Bool)
    case number(Double)
    case whole(Int64)
    case text(String)
    case list([InspectorJSON])
    /// In this order.
    case object([(String, InspectorJSON)])
    /// JSON that was written already.
    case written([UInt8])

    static func count(_ number: some BinaryInteger) -> InspectorJSON { .whole(Int64(clamping: number)) }
    static func text(_ text: String?) -> InspectorJSON { text.map { .text($0) } ?? .null }
    static func seconds(_ nanoseconds: UInt64) -> InspectorJSON { .number(Double(nanoseconds) / 1e9) }

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        write(into: &bytes)
        return bytes
    }

    private func write(into bytes: inout [UInt8]) {
        switch self {
        case .null: bytes += "null".utf8
        case .flag(let flag): bytes += (flag ? "true" : "false").utf8
        case .number(let number): bytes += (number.isFinite ? "\(number)" : "null").utf8
        case .whole(let number): bytes += "\(number)".utf8
        case .text(let text): Self.write(text, into: &bytes)
        case .list(let list):
            bytes.append(UInt8(ascii: "["))
            for (place, element) in list.enumerated() {
                if place > 0 { bytes.append(UInt8(ascii: ",")) }
                element.write(into: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let members):
            bytes.append(UInt8(ascii: "{"))
            for (place, member) in members.enumerated() {
                if place > 0 { bytes.append(UInt8(ascii: ",")) }
                Self.write(member.0, into: &bytes)
                bytes.append(UInt8(ascii: ":"))
                member.1.write(into: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        case .written(let json):
            // These stand inside of strings alone, and never behind a backslash.
            for byte in json { if Self.isMarkup(byte) { Self.escape(byte, into: &bytes) } else { bytes.append(byte) } }
        }
    }

    private static func write(_ text: String, into bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(byte)
            case 0..<0x20, 0x7F: escape(byte, into: &bytes)
            case _ where isMarkup(byte): escape(byte, into: &bytes)
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private static func isMarkup(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "<") || byte == UInt8(ascii: ">") || byte == UInt8(ascii: "&")
    }

    private static func escape(_ byte: UInt8, into bytes: inout [UInt8]) {
        let digits = Array("0123456789abcdef".utf8)
        bytes += "\\u00".utf8
        bytes.append(digits[Int(byte >> 4)])
        bytes.append(digits[Int(byte & 15)])
    }
}

/// What stands behind the question mark of a request: `page=2&search=a%20b`. A name that comes twice has its first value.
struct InspectorQuery {
    struct Refused: Error { let text: String }

    private var values: [String: String] = [:]

    init(_ query: String?) throws(Refused) {
        for part in (query ?? "").utf8.split(separator: UInt8(ascii: "&")) {
            let sides = part.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            let name = try Self.decode(Array(sides[0]))
            if values[name] == nil { values[name] = sides.count > 1 ? try Self.decode(Array(sides[1])) : "" }
        }
    }

    static func decode(_ encoded: [UInt8]) throws(Refused) -> String {
        do throws(PagePath.Refusal) {
            return String(decoding: try PagePath.decode(encoded[...]), as: UTF8.self)
        } catch {
            throw Refused(text: "a percent sign stands without two hexadecimal digits")
        }
    }

    /// Nil where it is left out or empty.
    func text(_ name: String) -> String? { values[name].flatMap { $0.isEmpty ? nil : $0 } }

    func number(_ name: String, in range: ClosedRange<Int>) throws(Refused) -> Int? {
        guard let text = text(name) else { return nil }
        guard let number = Int(text), range.contains(number) else {
            throw Refused(text: "\(name) is a number between \(range.lowerBound) and \(range.upperBound)")
        }
        return number
    }
}

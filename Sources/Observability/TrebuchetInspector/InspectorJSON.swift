internal import Bytes
internal import Trebuchet

/// JSON of the inspector's output.
///
/// It contains no markup for a browser, even if a name or a state does: `<`, `>` and `&` are escaped.
enum InspectorJSON: Sendable {
    case null
    case flag(Bool)
    case number(Double)
    case integer(Int64)
    case text(String)
    case list([InspectorJSON])
    /// The members are written in this order.
    case object([(String, InspectorJSON)])
    /// JSON that is already encoded.
    case encoded([UInt8])

    static func count(_ number: some BinaryInteger) -> InspectorJSON { .integer(Int64(clamping: number)) }
    static func text(_ text: String?) -> InspectorJSON { text.map { .text($0) } ?? .null }
    static func seconds(_ nanoseconds: UInt64) -> InspectorJSON { .number(Double(nanoseconds) / 1e9) }

    var bytes: [UInt8] {
        var buffer = ByteBuffer()
        write(to: &buffer)
        return Array(buffer.bytes)
    }

    func write(to buffer: inout ByteBuffer) {
        switch self {
        case .null: buffer.append("null" as StaticString)
        case .flag(let flag): buffer.append(flag ? "true" as StaticString : "false" as StaticString)
        case .number(let number): buffer.append(utf8: number.isFinite ? "\(number)" : "null")
        case .integer(let number): buffer.append(decimal: number)
        case .text(let text): Self.write(text, to: &buffer)
        case .list(let list):
            buffer.append(UInt8(ascii: "["))
            var isFirst = true
            for element in list {
                if !isFirst { buffer.append(UInt8(ascii: ",")) }
                isFirst = false
                element.write(to: &buffer)
            }
            buffer.append(UInt8(ascii: "]"))
        case .object(let members):
            buffer.append(UInt8(ascii: "{"))
            var isFirst = true
            for (name, value) in members {
                if !isFirst { buffer.append(UInt8(ascii: ",")) }
                isFirst = false
                Self.write(name, to: &buffer)
                buffer.append(UInt8(ascii: ":"))
                value.write(to: &buffer)
            }
            buffer.append(UInt8(ascii: "}"))
        case .encoded(let json):
            // Bytes to escape occur only inside strings and never after a backslash.
            json.withUnsafeBytes { Self.write($0, to: &buffer) { $0 == 0x7F || Self.isMarkup($0) } }
        }
    }

    private static func write(_ text: String, to buffer: inout ByteBuffer) {
        var text = text
        buffer.append(UInt8(ascii: "\""))
        text.withUTF8 { bytes in
            write(UnsafeRawBufferPointer(bytes), to: &buffer) { byte in
                byte < 0x20 || byte == 0x7F || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
                    || isMarkup(byte)
            }
        }
        buffer.append(UInt8(ascii: "\""))
    }

    /// Copies runs without bytes to escape at once; most texts have none.
    ///
    /// Characters that a terminal interprets are always escaped, so that the output of `curl` is safe to print.
    @inline(__always)
    private static func write(
        _ bytes: UnsafeRawBufferPointer, to buffer: inout ByteBuffer, escaping isEscaped: (UInt8) -> Bool
    ) {
        var (start, index) = (0, 0)
        while index < bytes.count {
            let byte = bytes[index]
            let command = mayBeginCommand[Int(byte)] ? command(at: index, in: bytes) : nil
            guard command != nil || isEscaped(byte) else {
                index += 1
                continue
            }
            buffer.append(UnsafeRawBufferPointer(rebasing: bytes[start..<index]))
            if let command {
                for unit in UTF16.encode(command)! { escape(unit, to: &buffer) }
                index += UTF8.width(command)
            } else {
                escape(byte, to: &buffer)
                index += 1
            }
            start = index
        }
        buffer.append(UnsafeRawBufferPointer(rebasing: bytes[start...]))
    }

    /// The first bytes of scalars that a terminal interprets: most texts, in most scripts, contain none of them.
    private static let mayBeginCommand: [Bool] = {
        var found = Array(repeating: false, count: 256)
        for value in 0x80...0x10FFFF as ClosedRange<UInt32> {
            guard let scalar = Unicode.Scalar(value), LogLine.isCommand(scalar) else { continue }
            found[Int(UTF8.encode(scalar)!.first!)] = true
        }
        return found
    }()

    private static func command(at index: Int, in bytes: UnsafeRawBufferPointer) -> Unicode.Scalar? {
        var (decoder, rest) = (UTF8(), bytes[index...].prefix(4).makeIterator())
        guard case .scalarValue(let scalar) = decoder.decode(&rest), LogLine.isCommand(scalar) else { return nil }
        return scalar
    }

    @inline(__always)
    private static func isMarkup(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "<") || byte == UInt8(ascii: ">") || byte == UInt8(ascii: "&")
    }

    private static func escape(_ byte: UInt8, to buffer: inout ByteBuffer) {
        if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
            buffer.append(UInt8(ascii: "\\"))
            return buffer.append(byte)
        }
        escape(UInt16(byte), to: &buffer)
    }

    private static func escape(_ unit: UInt16, to buffer: inout ByteBuffer) {
        buffer.append("\\u" as StaticString)
        for shift in [12, 8, 4, 0] as [UInt16] {
            let digit = UInt8(truncatingIfNeeded: unit >> shift) & 15
            buffer.append(digit < 10 ? 0x30 + digit : 0x57 + digit)
        }
    }
}

/// The query string of a request: `page=2&search=a%20b`. For a repeated name the first value counts.
struct InspectorQuery {
    /// The error of an invalid query, with its text.
    struct InvalidQuery: Error { let text: String }

    private var values: [String: String] = [:]

    init(_ query: String?) throws(InvalidQuery) {
        for part in (query ?? "").utf8.split(separator: UInt8(ascii: "&")) {
            let sides = part.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            let name = try Self.decode(Array(sides[0]))
            if values[name] == nil { values[name] = sides.count > 1 ? try Self.decode(Array(sides[1])) : "" }
        }
    }

    static func decode(_ encoded: [UInt8]) throws(InvalidQuery) -> String {
        do throws(PagePath.InvalidPath) {
            return String(decoding: try PagePath.decode(encoded[...]), as: UTF8.self)
        } catch {
            throw InvalidQuery(text: "a percent sign must precede two hexadecimal digits")
        }
    }

    /// Returns the value of a parameter; nil if it is missing or empty.
    func text(_ name: String) -> String? { values[name].flatMap { $0.isEmpty ? nil : $0 } }

    func number(_ name: String, in range: ClosedRange<Int>) throws(InvalidQuery) -> Int? {
        guard let text = text(name) else { return nil }
        guard let number = Int(text), range.contains(number) else {
            throw InvalidQuery(text: "\(name) must be a number between \(range.lowerBound) and \(range.upperBound)")
        }
        return number
    }
}

import Bytes

/// The content of a configuration file: keys with values, in the subset of TOML 1.0 that `TOMLReader` reads.
struct TOMLDocument {
    enum Value: Equatable {
        case string(String)
        case integer(Int)
        case float(Double)
        case boolean(Bool)
        case array([Value])
    }

    struct Entry: Equatable {
        let key: String
        /// The byte offset of the key.
        let offset: Int
        let value: Value
        /// The byte offset of the value.
        let valueOffset: Int
    }

    struct Problem: Error, Equatable {
        let offset: Int
        let reason: String
    }

    /// A place in the text. Lines and columns begin with 1; a column is a Unicode scalar.
    struct Position: Hashable, Comparable {
        let line: Int
        let column: Int

        static func < (one: Position, other: Position) -> Bool {
            (one.line, one.column) < (other.line, other.column)
        }
    }

    /// The maximum number of problems; the text after the last one is not read.
    static let maximumProblems = 100

    /// The entries without problems, in the order of the text.
    private(set) var entries: [Entry] = []
    private(set) var problems: [Problem] = []
    private let bytes: [UInt8]

    init(_ text: [UInt8]) {
        bytes = text
        if let offset = Self.invalidUTF8(in: bytes) {
            problems = [Problem(offset: offset, reason: "the file is not valid UTF-8")]
            return
        }
        var reader = TOMLReader(bytes)
        var offsets: [[UInt8]: Int] = [:]
        var isInTable = false
        while !reader.isAtEnd, problems.count < Self.maximumProblems {
            do throws(Problem) {
                switch try reader.nextLine() {
                case nil: break
                case .table(let offset):
                    isInTable = true
                    problems.append(
                        Problem(
                            offset: offset,
                            reason:
                                "tables are not supported: write the whole name of an option as key, such as 'admin-tls-cert'"
                        ))
                case .entry(let entry):
                    if isInTable { continue }
                    if let first = offsets[Array(entry.key.utf8)] {
                        let name = entry.key.prefix(bytes: 64)
                        problems.append(
                            Problem(
                                offset: entry.offset,
                                reason: "duplicate key '\(name)'; the first is in line \(position(of: first).line)"))
                        continue
                    }
                    offsets[Array(entry.key.utf8)] = entry.offset
                    entries.append(entry)
                }
            } catch {
                problems.append(error)
                reader.recover()
            }
        }
    }

    func position(of offset: Int) -> Position {
        let before = bytes.prefix(offset)
        let start = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
        // Only the first byte of a scalar counts.
        return Position(
            line: before.count { $0 == UInt8(ascii: "\n") } + 1,
            column: before[start...].count { $0 & 0xC0 != 0x80 } + 1)
    }

    private static func invalidUTF8(in bytes: [UInt8]) -> Int? {
        var parser = Unicode.UTF8.ForwardParser()
        var rest = bytes.makeIterator()
        var offset = 0
        while true {
            switch parser.parseScalar(from: &rest) {
            case .valid(let scalar): offset += scalar.count
            case .error: return offset
            case .emptyInput: return nil
            }
        }
    }
}

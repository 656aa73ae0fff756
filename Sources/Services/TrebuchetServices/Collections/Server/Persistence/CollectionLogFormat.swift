internal import Bytes
internal import Glibc
internal import Platform
internal import TrebuchetWire

/// The format of a collection in its log: lines of JSON, whose type follows from their beginnings.
///
///     {"revision":7,"time":1700000000000,"secret":-42}
///     {"id":"a","fields":{"id":"a"},"created":3,"revision":7,"createdAt":0,"updatedAt":0}
///     "b"
///     {"client":"0123456789abcdef","after":4,"outcomes":[{"number":5,"revision":7,"hash":99}]}
///
/// The first line is the last write. Then there are changed documents, ids of deleted documents, and recorded mutations of
/// clients: outcomes after `after`, or all of them without it. A client without outcomes is evicted. Reading a line twice has
/// the same effect as once.
enum CollectionLogFormat {
    static let head: StaticString = #"{"revision":"#
    static let document: StaticString = #"{"id":"#
    static let client: StaticString = #"{"client":"#

    static func write(
        revision: Int, time: Int, secret: UInt64? = nil, to lines: inout ByteBuffer
    ) {
        lines.append(head)
        lines.append(decimal: Int64(revision))
        lines.append(#","time":"# as StaticString)
        lines.append(decimal: Int64(time))
        if let secret {
            lines.append(#","secret":"# as StaticString)
            lines.append(decimal: Int64(bitPattern: secret))
        }
        lines.append("}\n" as StaticString)
    }

    static func write(_ document: Document, to lines: inout ByteBuffer) {
        document.writeStored(to: &lines)
        lines.append(UInt8(ascii: "\n"))
    }

    static func write(deleted id: DocumentID, to lines: inout ByteBuffer) {
        JSONString.append(id.text, to: &lines)
        lines.append(UInt8(ascii: "\n"))
    }

    static func write(_ change: MutationWindowChange, of name: ByteText, to lines: inout ByteBuffer) {
        lines.append(client)
        JSONString.append(name.text, to: &lines)
        if let window = change.window {
            if let known = change.known {
                lines.append(#","after":"# as StaticString)
                lines.append(decimal: Int64(known))
            }
            lines.append(#","outcomes":["# as StaticString)
            window.write(after: change.known ?? 0, to: &lines)
            lines.append(UInt8(ascii: "]"))
        }
        lines.append("}\n" as StaticString)
    }
}

/// Reads lines, some at a time.
struct CollectionLogLineReader {
    private let bytes: [UInt8]
    private var at = 0
    private var index = JSONObjectIndex()
    /// The bytes of lines about clients that were read.
    private(set) var clientBytes = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Reads up to `most` lines; returns false when there are no more.
    mutating func read(_ most: Int, into contents: inout CollectionContents) throws -> Bool {
        try bytes.withUnsafeBytes { bytes in
            var count = 0
            while count < most, at < bytes.count {
                let end = Self.endOfLine(from: at, bytes)
                try read(UnsafeRawBufferPointer(rebasing: bytes[at..<end]), into: &contents)
                at = end + 1
                count += 1
            }
            return at < bytes.count
        }
    }

    private static func endOfLine(from start: Int, _ bytes: UnsafeRawBufferPointer) -> Int {
        guard let base = bytes.baseAddress, let found = memchr(base + start, 0x0A, bytes.count - start) else {
            return bytes.count
        }
        return UnsafeRawPointer(found) - base
    }

    private mutating func read(_ line: UnsafeRawBufferPointer, into contents: inout CollectionContents) throws {
        if line.begins(with: CollectionLogFormat.document) {
            contents.documents.insert(try Document(stored: line, &index) ?? Document(json: line))
        } else if line.begins(with: CollectionLogFormat.client) {
            clientBytes += line.count + 1
            try Self.readClient(try JSONValue(json: line), into: &contents)
        } else if line.begins(with: CollectionLogFormat.head) {
            try Self.readHead(try JSONValue(json: line), into: &contents)
        } else if case .string(let id) = try JSONValue(json: line) {
            contents.documents.remove(DocumentID(id))
        } else {
            throw ValueError("a line of unknown kind")
        }
    }

    private static func readHead(_ line: JSONValue, into contents: inout CollectionContents) throws {
        guard case .object(let members) = line, let revision = members.number("revision"),
            let time = members.number("time")
        else { throw ValueError("a collection's first line requires the numbers revision and time") }
        (contents.revision, contents.time) = (Int(revision), Int(time))
        if let secret = members.number("secret") { contents.secret = UInt64(bitPattern: secret) }
    }

    private static func readClient(_ line: JSONValue, into contents: inout CollectionContents) throws {
        guard case .object(let members) = line, case .string(let name)? = members["client"] else {
            throw ValueError("a client requires a name")
        }
        let client = ByteText(name)
        guard case .array(let outcomes)? = members["outcomes"] else {
            contents.clients[client] = nil
            return
        }
        if members["after"] == nil { contents.clients[client] = nil }
        for outcome in outcomes {
            try contents.clients[client, default: MutationDeduplicationWindow()].remember(stored: outcome)
        }
    }
}

extension JSONObject {
    fileprivate func number(_ name: String) -> Int64? {
        if case .integer(let number)? = self[name] { number } else { nil }
    }
}

extension UnsafeRawBufferPointer {
    fileprivate func begins(with text: StaticString) -> Bool {
        text.withUTF8Buffer { starts(with: $0) }
    }
}

package import Bytes
internal import Deltas
package import TrebuchetWire

/// A custom implementation, because field names are compared by their bytes and other coders treat some different names as
/// equal.
extension QueryResult: DirectJSON {
    package init(json: inout JSONCursor, depth: Int) throws {
        self.init()
        var isRevisionThere = false
        try json.eachMember(depth: depth) { json, name in
            switch name {
            case "revision":
                revision = try json.integer("revision", depth: depth + 1)
                isRevisionThere = true
            case "count": count = try json.integerOrNull("count", depth: depth + 1)
            case "hasMore":
                switch try JSONValue(json: &json, depth: depth + 1) {
                case .bool(let flag): hasMore = flag
                case .null: break
                default: throw ValueError("'hasMore' must be true or false")
                }
            case "documents":
                let all = try [Document](json: &json, depth: depth + 1)
                guard Set(all.map(\.id)).count == all.count else { throw ValueError("two documents have the same id") }
                documents = KeyedCollection(all)
            default: _ = try json.value(depth: depth + 1)
            }
        }
        guard isRevisionThere else { throw ValueError("a result requires a revision") }
    }

    package func write(json: inout ByteBuffer) {
        json.append(#"{"revision":"# as StaticString)
        json.append(decimal: Int64(revision))
        if let count {
            json.append(#","count":"# as StaticString)
            json.append(decimal: Int64(count))
        }
        json.append(#","hasMore":"# as StaticString)
        json.append((hasMore ? "true" : "false") as StaticString)
        json.append(#","documents":"# as StaticString)
        json.append(documents: documents)
        json.append(UInt8(ascii: "}"))
    }
}

extension QueryPage: DirectJSON {
    package init(json: inout JSONCursor, depth: Int) throws {
        var (documents, cursor, count, revision): ([Document]?, String?, Int?, Int?)
        try json.eachMember(depth: depth) { json, name in
            switch name {
            case "documents": documents = try [Document](json: &json, depth: depth + 1)
            case "cursor": cursor = try JSONValue(json: &json, depth: depth + 1).textOrNull
            case "count": count = try json.integerOrNull("count", depth: depth + 1)
            case "revision": revision = try json.integer("revision", depth: depth + 1)
            default: _ = try json.value(depth: depth + 1)
            }
        }
        guard let documents, let revision else { throw ValueError("a page requires documents and a revision") }
        self.init(documents: documents, cursor: cursor, count: count, revision: revision)
    }

    package func write(json: inout ByteBuffer) {
        json.append(Self.start)
        json.append(documents: documents)
        writeEnd(to: &json)
    }

    /// The text before the documents.
    package static var start: StaticString { #"{"documents":"# }

    /// Appends what follows the documents.
    package func writeEnd(to json: inout ByteBuffer) {
        if let cursor {
            json.append(#","cursor":"# as StaticString)
            JSONString.append(cursor, to: &json)
        }
        if let count {
            json.append(#","count":"# as StaticString)
            json.append(decimal: Int64(count))
        }
        json.append(#","revision":"# as StaticString)
        json.append(decimal: Int64(revision))
        json.append(UInt8(ascii: "}"))
    }
}

extension ByteBuffer {
    fileprivate mutating func append(documents: some Sequence<Document>) {
        append(UInt8(ascii: "["))
        var isFirst = true
        for document in documents {
            if !isFirst { append(UInt8(ascii: ",")) }
            isFirst = false
            document.write(json: &self)
        }
        append(UInt8(ascii: "]"))
    }
}

extension JSONCursor {
    fileprivate mutating func integerOrNull(_ name: String, depth: Int) throws -> Int? {
        switch try JSONValue(json: &self, depth: depth) {
        case .null: return nil
        case .integer(let number): return Int(number)
        default: throw ValueError("'\(name)' must be an integer")
        }
    }

    fileprivate mutating func integer(_ name: String, depth: Int) throws -> Int {
        guard let number = try integerOrNull(name, depth: depth) else {
            throw ValueError("'\(name)' must be an integer")
        }
        return number
    }
}

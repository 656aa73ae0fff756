/// One operation of a patch, parsed from its text.
package struct PatchOperation {
    /// The kind of an operation.
    package enum Kind: String, Sendable {
        case add, remove, replace, move, copy, test

        var hasValue: Bool { self == .add || self == .replace || self == .test }
        var hasFrom: Bool { self == .move || self == .copy }
    }

    package let kind: Kind
    package let path: JSONPointer
    /// The source path of `move` and `copy`.
    package let from: JSONPointer?
    /// The value in the patch, for `add`, `replace` and `test`.
    package let value: UnsafeRawBufferPointer?

    /// Reads the next operation of the patch's array at the cursor; nil behind the last.
    static func next(_ cursor: inout JSONCursor, isFirst: Bool) throws(JSONPatchError) -> PatchOperation? {
        do throws(EnvelopeError) {
            var isFirst = isFirst
            if isFirst { try cursor.expect(0x5B) }
            guard try cursor.hasElement(&isFirst) else {
                try cursor.expectEnd()
                return nil
            }
            return try PatchOperation(&cursor)
        } catch {
            throw JSONPatchError(.malformedPatch, error.message)
        }
    }

    private init(_ cursor: inout JSONCursor) throws(EnvelopeError) {
        var members = Members()
        try members.read(&cursor)
        let op = try members.string(members.op, "op", cursor)
        guard let kind = Kind(rawValue: JSONString.text(op.bytes, isEscaped: op.isEscaped)) else {
            throw EnvelopeError("unknown 'op'")
        }
        self.kind = kind
        path = try members.pointer(members.path, "path", cursor)
        from = kind.hasFrom ? try members.pointer(members.from, "from", cursor) : nil
        guard kind.hasValue else {
            value = nil
            return
        }
        guard !members.value.isAbsent else { throw EnvelopeError("missing 'value'") }
        value = cursor.bytes(members.value)
    }

    /// The members of an operation, as ranges of values.
    private struct Members {
        var op = ByteRange.absent
        var path = ByteRange.absent
        var from = ByteRange.absent
        var value = ByteRange.absent

        mutating func read(_ cursor: inout JSONCursor) throws(EnvelopeError) {
            var isFirst = true
            try cursor.expect(0x7B)
            while let range = try cursor.name(&isFirst) {
                let name = JSONName(range, in: cursor)
                if name.isEqual("op") {
                    try Self.setMember(&op, name, &cursor)
                } else if name.isEqual("path") {
                    try Self.setMember(&path, name, &cursor)
                } else if name.isEqual("from") {
                    try Self.setMember(&from, name, &cursor)
                } else if name.isEqual("value") {
                    try Self.setMember(&value, name, &cursor)
                } else {
                    _ = try cursor.value(depth: 2)
                }
            }
        }

        private static func setMember(
            _ range: inout ByteRange, _ name: JSONName, _ cursor: inout JSONCursor
        ) throws(EnvelopeError) {
            guard range.isAbsent else {
                throw EnvelopeError("duplicate member '\(String(decoding: name.content, as: UTF8.self))'")
            }
            // Depth 0, because the value becomes part of the document, not of the patch.
            range = try cursor.value()
        }

        func string(_ range: ByteRange, _ name: StaticString, _ cursor: JSONCursor) throws(EnvelopeError) -> JSONName {
            guard !range.isAbsent else { throw EnvelopeError("missing '\(name)'") }
            guard cursor.base[Int(range.offset)] == 0x22 else { throw EnvelopeError("'\(name)' must be a string") }
            var inner = cursor
            inner.at = Int(range.offset)
            return JSONName(try inner.string(), in: inner)
        }

        func pointer(
            _ range: ByteRange, _ name: StaticString, _ cursor: JSONCursor
        ) throws(EnvelopeError) -> JSONPointer {
            let text = try string(range, name, cursor)
            guard let pointer = JSONPointer(utf8: text.content) else {
                throw EnvelopeError(
                    "'\(name)' is not a JSON Pointer: it must begin with '/', and '~' must be followed by 0 or 1")
            }
            return pointer
        }
    }
}

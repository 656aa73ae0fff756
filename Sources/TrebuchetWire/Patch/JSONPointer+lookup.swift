extension JSONPointer {
    /// Where the value is that this points to; nil when there is none, or when the text is no JSON.
    ///
    /// One pass over the text, and nothing is built of it. A member whose name comes twice in its object is not found:
    /// nobody can say which of the two is meant.
    package func lookup(in text: UnsafeRawBufferPointer) -> Range<Int>? {
        var cursor = JSONCursor(text)
        do throws(EnvelopeError) {
            let place = try find(0, &cursor)
            try cursor.expectEnd()
            return place
        } catch {
            return nil
        }
    }

    /// Moves the cursor past a value and finds the part of it that the tokens from `depth` on name.
    private func find(_ depth: Int, _ cursor: inout JSONCursor) throws(EnvelopeError) -> Range<Int>? {
        let first = cursor.peek()
        guard depth < tokens.count, first == 0x7B || first == 0x5B else {
            let value = try cursor.value(depth: depth)
            let start = Int(value.offset)
            return depth == tokens.count ? start..<start + Int(value.count) : nil
        }
        guard depth < JSONCursor.deepest else { throw cursor.tooDeep() }
        cursor.at += 1
        return first == 0x7B ? try findMember(depth, &cursor) : try findElement(depth, &cursor)
    }

    private func findMember(_ depth: Int, _ cursor: inout JSONCursor) throws(EnvelopeError) -> Range<Int>? {
        var found: Range<Int>?
        var matches = 0
        var isFirst = true
        while let name = try cursor.name(&isFirst) {
            if tokens[depth].names(JSONName(name, in: cursor)) {
                matches += 1
                found = try find(depth + 1, &cursor)
            } else {
                _ = try cursor.value(depth: depth + 1)
            }
        }
        return matches == 1 ? found : nil
    }

    private func findElement(_ depth: Int, _ cursor: inout JSONCursor) throws(EnvelopeError) -> Range<Int>? {
        let wanted = tokens[depth].index
        var found: Range<Int>?
        var index = 0
        var isFirst = true
        while try cursor.hasElement(&isFirst) {
            if index == wanted {
                found = try find(depth + 1, &cursor)
            } else {
                _ = try cursor.value(depth: depth + 1)
            }
            index += 1
        }
        return found
    }
}

extension JSONPointer.Token {
    /// Whether this is the name of the member that `name` is the name of.
    @inline(__always)
    func names(_ name: JSONName) -> Bool {
        bytes.withUnsafeBytes { JSONName($0) == name }
    }
}

extension JSONPointer {
    /// Returns the range of the target; nil if it does not exist, or if the text is not JSON.
    ///
    /// The lookup is one pass over the text without building values. A member with a duplicate name is not found, because it is
    /// ambiguous.
    package func lookup(in text: UnsafeRawBufferPointer) -> Range<Int>? {
        var cursor = JSONCursor(text)
        do throws(EnvelopeError) {
            let range = try find(0, &cursor)
            try cursor.expectEnd()
            return range
        } catch {
            return nil
        }
    }

    /// Moves the cursor past a value and finds its part at the tokens from `depth` on.
    private func find(_ depth: Int, _ cursor: inout JSONCursor) throws(EnvelopeError) -> Range<Int>? {
        let first = cursor.peek()
        guard depth < tokens.count, first == 0x7B || first == 0x5B else {
            let value = try cursor.value(depth: depth)
            let start = Int(value.offset)
            return depth == tokens.count ? start..<start + Int(value.count) : nil
        }
        guard depth < JSONCursor.maximumDepth else { throw cursor.tooDeep() }
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
    /// Returns whether this token is the name `name`.
    @inline(__always)
    func names(_ name: JSONName) -> Bool {
        bytes.withUnsafeBytes { JSONName($0) == name }
    }
}

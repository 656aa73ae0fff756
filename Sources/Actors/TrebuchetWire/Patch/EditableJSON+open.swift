extension EditableJSON {
    /// Opens a container and, in the same pass, the containers on the path below it. Returns the part unchanged if it is no
    /// container. `depth` is the number of path tokens that lead to the part.
    mutating func open(
        _ part: EditableJSONValue, towards path: JSONPointer, depth: Int
    ) throws(JSONPatchError) -> EditableJSONValue {
        var cursor = JSONCursor(part.text)
        do throws(EnvelopeError) {
            let opened = try open(&cursor, path, depth)
            try cursor.expectEnd()
            return opened
        } catch {
            throw JSONPatchError(.malformedDocument, error.message)
        }
    }

    private mutating func open(
        _ cursor: inout JSONCursor, _ path: JSONPointer, _ depth: Int
    ) throws(EnvelopeError) -> EditableJSONValue {
        let first = cursor.peek()
        guard depth < path.tokens.count, first == 0x7B || first == 0x5B else {
            return EditableJSONValue(cursor.bytes(try cursor.value(depth: depth)))
        }
        guard depth < JSONCursor.maximumDepth else { throw cursor.tooDeep() }
        cursor.at += 1
        // The number is assigned before those of the parts, which are opened meanwhile.
        let number = containers.count
        containers.append(OpenContainer(isObject: first == 0x7B))
        containers[number] = first == 0x7B ? try openObject(&cursor, path, depth) : try openArray(&cursor, path, depth)
        return EditableJSONValue(container: number)
    }

    private mutating func openObject(
        _ cursor: inout JSONCursor, _ path: JSONPointer, _ depth: Int
    ) throws(EnvelopeError) -> OpenContainer {
        var object = OpenContainer(isObject: true)
        let isLast = depth == path.tokens.count - 1
        var isFirst = true
        while let range = try cursor.name(&isFirst) {
            let name = JSONName(range, in: cursor)
            let isOnPath = !isLast && path.tokens[depth].names(name)
            let part =
                isOnPath
                ? try open(&cursor, path, depth + 1)
                : EditableJSONValue(cursor.bytes(try cursor.value(depth: depth + 1)))
            object.append(part, named: name)
        }
        return object
    }

    private mutating func openArray(
        _ cursor: inout JSONCursor, _ path: JSONPointer, _ depth: Int
    ) throws(EnvelopeError) -> OpenContainer {
        var array = OpenContainer(isObject: false)
        let next = depth == path.tokens.count - 1 ? nil : path.tokens[depth].index
        var isFirst = true
        while try cursor.hasElement(&isFirst) {
            let part =
                array.parts.count == next
                ? try open(&cursor, path, depth + 1)
                : EditableJSONValue(cursor.bytes(try cursor.value(depth: depth + 1)))
            array.append(part)
        }
        return array
    }
}

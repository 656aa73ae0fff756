extension EditableJSON {
    /// Returns the text of the value.
    mutating func text() throws(JSONPatchError) -> [UInt8] {
        let size = try size(of: root)
        return [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            write(root, to: UnsafeMutableRawBufferPointer(buffer))
            count = size
        }
    }

    /// Returns the part at a position, converted to text if it is open: two positions must not share an open container.
    mutating func closed(_ location: Location) throws(JSONPatchError) -> EditableJSONValue {
        let part = part(at: location)
        guard part.container != nil else { return part }
        let size = try size(of: part)
        try consumeBudget(size)
        let text = newText(count: size)
        write(part, to: text)
        let closed = EditableJSONValue(UnsafeRawBufferPointer(text))
        set(location, closed)
        return closed
    }

    private func size(of part: EditableJSONValue) throws(JSONPatchError) -> Int {
        let size = fullSize(of: part)
        guard size <= maximumBytes else {
            throw JSONPatchError(.tooLarge, "the result would have \(size) bytes, more than \(maximumBytes)")
        }
        return size
    }

    /// Returns the size in bytes, regardless of the limit.
    func fullSize(of part: EditableJSONValue) -> Int {
        guard let container = part.container else { return part.count }
        return containers[container].parts.reduce(0) { $0 + fullSize(of: $1) } + containers[container].framingCount
    }

    private func write(_ part: EditableJSONValue, to target: UnsafeMutableRawBufferPointer) {
        var writer = EditableJSONWriter(target)
        write(part, &writer)
        writer.flush()
        assert(writer.count == target.count, "the result does not have the computed size")
    }

    private func write(_ part: EditableJSONValue, _ writer: inout EditableJSONWriter) {
        guard let number = part.container else { return writer.append(part.text) }
        let isObject = containers[number].isObject
        writer.append(isObject ? 0x7B : 0x5B)
        for index in containers[number].parts.indices {
            let part = containers[number].parts[index]
            if isObject {
                let name = containers[number].names[index].quoted
                if index > 0 { writer.append(0x2C, before: name) }
                writer.append(name)
                writer.append(0x3A, before: part.text)
            } else if index > 0 {
                writer.append(0x2C, before: part.text)
            }
            write(part, &writer)
        }
        writer.append(isObject ? 0x7D : 0x5D)
    }
}

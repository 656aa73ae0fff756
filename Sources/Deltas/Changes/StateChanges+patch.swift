package import Bytes
internal import TrebuchetWire

/// Changes as the text of a patch (RFC 6902).
extension StateChanges {
    /// Reads a patch. Throws `StateChangesError` when it is none, has too many operations, or one that changes never have.
    package init(patch: UnsafeRawBufferPointer) throws {
        var changes = StateChanges()
        do throws(JSONPatchError) {
            try JSONPatch.read(patch) { (operation) throws(JSONPatchError) in try changes.append(operation) }
        } catch {
            throw StateChangesError(error.description)
        }
        self = changes
    }

    private mutating func append(_ operation: PatchOperation) throws(JSONPatchError) {
        guard let kind = Operation.Kind(rawValue: operation.kind.rawValue) else {
            throw JSONPatchError(.malformedPatch, "changes have no '\(operation.kind)'")
        }
        guard steps.count < Self.mostOperations else {
            throw JSONPatchError(.tooLarge, "there are more than \(Self.mostOperations) operations")
        }
        let offset = bytes.count
        if let value = operation.value { bytes.append(contentsOf: value) }
        steps.append(
            Step(
                kind: kind, path: operation.path.tokens, from: operation.from?.tokens, value: offset..<bytes.count))
    }

    /// Writes the patch.
    package func write(into buffer: inout ByteBuffer) {
        buffer.reserve(bytes.count + steps.count * 64 + 2)
        buffer.append(0x5B)
        for (number, step) in zip(0..., steps) {
            if number > 0 { buffer.append(0x2C) }
            buffer.append(#"{"op":""# as StaticString)
            buffer.append(utf8: step.kind.rawValue)
            if let from = step.from {
                buffer.append(#"","from":"# as StaticString)
                JSONString.append(JSONPointer(Array(from[depth...])).description, to: &buffer)
                buffer.append(#","path":"# as StaticString)
            } else {
                buffer.append(#"","path":"# as StaticString)
            }
            JSONString.append(JSONPointer(Array(step.path[depth...])).description, to: &buffer)
            if !step.value.isEmpty {
                buffer.append(#","value":"# as StaticString)
                bytes.withUnsafeBytes { buffer.append(UnsafeRawBufferPointer(rebasing: $0[step.value])) }
            }
            buffer.append(0x7D)
        }
        buffer.append(0x5D)
    }
}

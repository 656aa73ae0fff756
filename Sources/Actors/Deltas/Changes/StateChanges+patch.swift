package import Bytes
internal import TrebuchetWire

/// Reading and writing changes as the text of a patch (RFC 6902).
extension StateChanges {
    /// Reads a patch. Throws `StateChangesError` for an invalid patch, too many operations, or operations other than add, remove,
    /// replace and move.
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
            throw JSONPatchError(.malformedPatch, "operation '\(operation.kind)' is not supported")
        }
        guard steps.count < Self.maximumOperations else {
            throw JSONPatchError(.tooLarge, "there are more than \(Self.maximumOperations) operations")
        }
        let offset = bytes.count
        if let value = operation.value { bytes.append(contentsOf: value) }
        steps.append(
            Step(
                kind: kind, path: Path(names: operation.path.tokens),
                from: operation.from.map { Path(names: $0.tokens) },
                value: offset..<bytes.count))
    }

    /// Writes the patch.
    package func write(into buffer: inout ByteBuffer) {
        buffer.reserve(bytes.count + steps.count * 64 + 2)
        buffer.append(0x5B)
        var names = PathTextCache(depth: depth)
        var isFirst = true
        for step in steps {
            if !isFirst { buffer.append(0x2C) }
            isFirst = false
            buffer.append(#"{"op":""# as StaticString)
            buffer.append(step.kind.text)
            if let from = step.from {
                buffer.append(#"","from":""# as StaticString)
                names.append(from, to: &buffer)
            }
            buffer.append(#"","path":""# as StaticString)
            names.append(step.path, to: &buffer)
            buffer.append(0x22)
            if !step.value.isEmpty {
                buffer.append(#","value":"# as StaticString)
                bytes.withUnsafeBytes { buffer.append(UnsafeRawBufferPointer(rebasing: $0[step.value])) }
            }
            buffer.append(0x7D)
        }
        buffer.append(0x5D)
    }

    /// A cache of encoded paths. Consecutive paths mostly have the same names, which are encoded once.
    private struct PathTextCache {
        let depth: Int
        private var names: [JSONPointer.Token] = []
        private var text: [UInt8] = []

        init(depth: Int) { self.depth = depth }

        mutating func append(_ path: Path, to buffer: inout ByteBuffer) {
            if path.names != names {
                names = path.names
                var escaped = ByteBuffer()
                JSONString.append(JSONPointer(Array(names.dropFirst(depth))).description, to: &escaped)
                text = Array(escaped.bytes.dropFirst().dropLast())
            }
            buffer.append(text)
            guard path.index >= 0, depth < path.count else { return }
            buffer.append(0x2F)
            buffer.append(decimal: Int64(path.index))
        }
    }
}

extension StateChanges.Operation.Kind {
    fileprivate var text: StaticString {
        switch self {
        case .add: "add"
        case .remove: "remove"
        case .replace: "replace"
        case .move: "move"
        }
    }
}

internal import Bytes

/// A JSON value that is being edited.
///
/// Unchanged parts stay ranges of the text that they came from. Only arrays and objects on the path to a change are opened, into
/// a list of their parts; this takes one pass over the text. Parts point into the document and the patch, which outlive the
/// draft.
struct EditableJSON: ~Copyable {
    private(set) var root: EditableJSONValue
    var containers: [OpenContainer] = []
    /// Texts that are created here: names of new members, and open values that were copied. Owned.
    private var texts: [UnsafeMutableRawBufferPointer] = []
    let maximumBytes: Int
    /// The remaining budget of bytes read, compared or copied and parts moved.
    private var workLeft: Int

    init(_ document: UnsafeRawBufferPointer, maximumBytes: Int, workLimit: Int) {
        root = EditableJSONValue(document)
        self.maximumBytes = maximumBytes
        workLeft = workLimit
    }

    deinit {
        for text in texts { text.deallocate() }
    }

    // MARK: Operations

    mutating func run(_ operation: PatchOperation) throws(JSONPatchError) {
        let path = operation.path
        switch operation.kind {
        case .add: try insert(checked(EditableJSONValue(operation.value!), for: path), at: path)
        case .replace: try replace(checked(EditableJSONValue(operation.value!), for: path), at: path)
        case .remove: _ = try remove(at: path)
        case .move: try move(from: operation.from!, to: path)
        case .copy: try insert(checked(closed(find(operation.from!)), for: path), at: path)
        case .test:
            let found = try closed(find(path)).text
            try consumeBudget(found.count)
            guard JSONText.isEqual(found, operation.value!) else {
                throw JSONPatchError(.testFailed, "another value is at '\(path)'")
            }
        }
    }

    private mutating func move(from: JSONPointer, to path: JSONPointer) throws(JSONPatchError) {
        guard !from.isAbove(path) else {
            throw JSONPatchError(.missingTarget, "'\(from)' cannot move into itself, to '\(path)'")
        }
        if from == path {
            _ = try find(path)
        } else {
            try insert(checked(remove(at: from), for: path), at: path)
        }
    }

    private mutating func insert(_ part: EditableJSONValue, at path: JSONPointer) throws(JSONPatchError) {
        guard let token = path.tokens.last else {
            root = part
            return
        }
        let parent = try parent(of: path)
        if containers[parent].isObject {
            if let index = try containers[parent].index(of: token) {
                containers[parent].parts[index] = part
            } else {
                let name = newName(token)
                containers[parent].append(part, named: name)
            }
        } else {
            let count = containers[parent].parts.count
            guard let index = token.isEnd ? count : token.index, index <= count else { throw Self.missing(path) }
            try consumeBudget(count - index)
            containers[parent].parts.insert(part, at: index)
        }
    }

    private mutating func replace(_ part: EditableJSONValue, at path: JSONPointer) throws(JSONPatchError) {
        try set(find(path), part)
    }

    private mutating func remove(at path: JSONPointer) throws(JSONPatchError) -> EditableJSONValue {
        guard case .part(let index, let parent) = try find(path) else {
            throw JSONPatchError(.missingTarget, "the document as a whole cannot be removed")
        }
        try consumeBudget(containers[parent].parts.count - index)
        return containers[parent].remove(at: index)
    }

    // MARK: Places

    /// The position of a part.
    enum Location {
        case root
        case part(index: Int, container: Int)
    }

    func part(at location: Location) -> EditableJSONValue {
        switch location {
        case .root: root
        case .part(let index, let container): containers[container].parts[index]
        }
    }

    mutating func set(_ location: Location, _ part: EditableJSONValue) {
        switch location {
        case .root: root = part
        case .part(let index, let container): containers[container].parts[index] = part
        }
    }

    private mutating func find(_ path: JSONPointer) throws(JSONPatchError) -> Location {
        guard let token = path.tokens.last else { return .root }
        let parent = try parent(of: path)
        guard let index = try containers[parent].index(of: token) else { throw Self.missing(path) }
        return .part(index: index, container: parent)
    }

    /// Returns the number of the container that the last token of a path refers to, opened like all containers above it.
    private mutating func parent(of path: JSONPointer) throws(JSONPatchError) -> Int {
        var location = Location.root
        for depth in path.tokens.indices {
            var part = part(at: location)
            if part.container == nil {
                try consumeBudget(part.count)
                part = try open(part, towards: path, depth: depth)
                set(location, part)
            }
            guard let container = part.container else { throw Self.missing(path) }
            if depth == path.tokens.count - 1 { return container }
            guard let index = try containers[container].index(of: path.tokens[depth]) else { throw Self.missing(path) }
            location = .part(index: index, container: container)
        }
        preconditionFailure("the whole document has no parent")
    }

    static func missing(_ path: JSONPointer) -> JSONPatchError {
        JSONPatchError(.missingTarget, "'\(path)' does not exist")
    }

    // MARK: Limits

    mutating func consumeBudget(_ work: Int) throws(JSONPatchError) {
        workLeft -= work
        guard workLeft >= 0 else { throw JSONPatchError(.tooLarge, "the patch exceeds the work limit") }
    }

    /// Returns the part, unless the path would nest it too deeply.
    private mutating func checked(_ part: EditableJSONValue, for path: JSONPointer) throws(JSONPatchError)
        -> EditableJSONValue
    {
        try consumeBudget(fullSize(of: part))
        guard fits(part, below: path.tokens.count) else {
            throw JSONPatchError(.tooLarge, "at '\(path)' values would nest deeper than \(JSONCursor.maximumDepth)")
        }
        return part
    }

    private func fits(_ part: EditableJSONValue, below depth: Int) -> Bool {
        if let container = part.container {
            return depth < JSONCursor.maximumDepth
                && containers[container].parts.allSatisfy { fits($0, below: depth + 1) }
        }
        guard let first = part.text.first, first == 0x7B || first == 0x5B else {
            return depth <= JSONCursor.maximumDepth
        }
        var cursor = JSONCursor(part.text)
        return (try? cursor.value(depth: depth)) != nil
    }

    /// Returns the name of a new member, stored as a new text.
    private mutating func newName(_ token: JSONPointer.Token) -> JSONName {
        var buffer = ByteBuffer(capacity: token.bytes.count + 2)
        token.bytes.withUnsafeBytes { JSONString.append($0, to: &buffer) }
        let text = newText(count: buffer.count)
        text.copyMemory(from: buffer.bytes)
        let name = UnsafeRawBufferPointer(rebasing: text[1..<text.count - 1])
        return JSONName(name, isEscaped: name.count > token.bytes.count)
    }

    /// Allocates memory that lives as long as the draft.
    mutating func newText(count: Int) -> UnsafeMutableRawBufferPointer {
        let text = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
        texts.append(text)
        return text
    }
}

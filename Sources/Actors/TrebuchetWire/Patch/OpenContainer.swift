/// An array or object in a draft, divided into its parts.
struct OpenContainer {
    let isObject: Bool
    /// The elements, or the values of the members.
    var parts: [EditableJSONValue] = []
    /// The names of an object's members, in the order of `parts`.
    private(set) var names: [JSONName] = []
    /// The index of each name, or -1 for a duplicate name; created when a large object is searched again.
    private(set) var indices: [JSONName: Int]?
    private var wasSearched = false
    /// The number of members up to which names are searched linearly.
    private static let fewMembers = 16

    init(isObject: Bool) { self.isObject = isObject }

    /// Returns the index of the part that a token names, or nil.
    mutating func index(of token: JSONPointer.Token) throws(JSONPatchError) -> Int? {
        guard isObject else { return token.index.flatMap { $0 < parts.count ? $0 : nil } }
        let found = token.bytes.withUnsafeBytes { memberIndex(of: JSONName($0)) }
        guard found != -1 else {
            throw JSONPatchError(
                .malformedDocument, "duplicate member '\(String(decoding: token.bytes, as: UTF8.self))' in its object")
        }
        return found
    }

    private mutating func memberIndex(of name: JSONName) -> Int? {
        if wasSearched, indices == nil, names.count > Self.fewMembers {
            indices = Dictionary(zip(names, names.indices), uniquingKeysWith: { _, _ in -1 })
        }
        wasSearched = true
        if let indices { return indices[name] }
        var found: Int?
        for index in names.indices where names[index] == name { found = found == nil ? index : -1 }
        return found
    }

    /// The number of bytes of its text outside of all parts.
    var framingCount: Int {
        names.reduce(2 + max(0, parts.count - 1)) { $0 + $1.bytes.count + 3 }
    }

    mutating func append(_ part: EditableJSONValue) { parts.append(part) }

    /// Appends a member with a new name.
    mutating func append(_ part: EditableJSONValue, named name: JSONName) {
        indices?[name] = parts.count
        parts.append(part)
        names.append(name)
    }

    mutating func remove(at index: Int) -> EditableJSONValue {
        guard isObject else { return parts.remove(at: index) }
        guard indices != nil else {
            names.remove(at: index)
            return parts.remove(at: index)
        }
        // The last member moves to the index, so that the indices of the others stay valid.
        indices?[names[index]] = nil
        if index < names.count - 1, let last = names.last, let lastIndex = indices?[last], lastIndex >= 0 {
            indices?[last] = index
        }
        names.swapAt(index, names.count - 1)
        parts.swapAt(index, parts.count - 1)
        names.removeLast()
        return parts.removeLast()
    }
}

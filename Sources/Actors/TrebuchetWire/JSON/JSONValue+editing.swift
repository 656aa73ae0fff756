/// Changes in place, as migrations of persisted states make them.
extension JSONValue {
    /// The member with this name; nil if there is none, or if this is not an object.
    ///
    /// Setting nil removes it; setting `.null` does not. Setting a member of another kind of value has no effect: make it an
    /// object first, with `= [:]`. Each set copies the text of the object: for many members, use `mutateEach`.
    public subscript(name: String) -> JSONValue? {
        get { members?[name] }
        set { members?[name] = newValue }
    }

    /// The element at this index, from 0; nil if there is none, or if this is not an array.
    ///
    /// Setting nil removes it and shifts later elements. Setting an element that does not exist has no effect: append to
    /// `elements`.
    public subscript(index: Int) -> JSONValue? {
        get {
            guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
            return elements[index]
        }
        // In place, so that nested changes do not copy the array.
        _modify {
            guard case .array(var elements) = self, elements.indices.contains(index) else {
                var nothing: JSONValue?
                yield &nothing
                return
            }
            self = .null
            var value: JSONValue? = elements[index]
            elements[index] = .null
            defer {
                if let value { elements[index] = value } else { elements.remove(at: index) }
                self = .array(elements)
            }
            yield &value
        }
    }

    /// The elements of an array; nil for another kind of value. Setting them makes this an array; setting nil has no effect.
    public var elements: [JSONValue]? {
        get { if case .array(let elements) = self { elements } else { nil } }
        set { if let newValue { self = .array(newValue) } }
        // In place, so that `append` does not copy the array.
        _modify {
            var elements = elements
            if elements != nil { self = .array([]) }
            defer { if let elements { self = .array(elements) } }
            yield &elements
        }
    }

    /// The members of an object; nil for another kind of value. Setting them makes this an object; setting nil has no effect.
    public var members: JSONObject? {
        get { if case .object(let members) = self { members } else { nil } }
        set { if let newValue { self = .object(newValue) } }
    }

    /// Changes each element of an array, or the value of each member of an object; has no effect on other kinds of values.
    ///
    /// - Throws: the error of `change`; elements before it are changed then.
    public mutating func mutateEach(_ change: (inout JSONValue) throws -> Void) rethrows {
        switch self {
        case .array(var elements):
            self = .null
            defer { self = .array(elements) }
            for index in elements.indices { try change(&elements[index]) }
        case .object(var members):
            defer { self = .object(members) }
            try members.mutateEach(change)
        default: return
        }
    }
}

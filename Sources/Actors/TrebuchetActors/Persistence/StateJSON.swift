internal import Platform

/// The JSON of a persisted state, which `migrate:` changes.
///
///     json["title"] = json["name"]
///     json["name"] = nil
///     json["todos"]?.mutateEach {  = 1 }
///
/// Unchanged parts are preserved exactly: numbers are kept as text, and names are compared by bytes.
public enum StateJSON: Sendable, Hashable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A number, as text.
    case number(Number)
    /// A text.
    case string(String)
    /// Values in their order.
    case array([StateJSON])
    /// Members by name, in no order.
    case object(Object)
}

extension StateJSON {
    /// The member with this name; nil if there is none, or if this is not an object.
    ///
    /// Setting nil removes it; setting `.null` does not. Setting a member of another kind of value has no effect: make it an
    /// object first, with `= [:]`.
    public subscript(name: String) -> StateJSON? {
        get {
            guard case .object(let members) = self else { return nil }
            return members[name]
        }
        // In place, so that nested changes do not copy the content.
        _modify {
            guard case .object(var members) = self else {
                var nothing: StateJSON?
                yield &nothing
                return
            }
            self = .null
            var value = members.removeValue(named: name)
            defer {
                members[name] = value
                self = .object(members)
            }
            yield &value
        }
    }

    /// The element at this index, from 0; nil if there is none, or if this is not an array.
    ///
    /// Setting nil removes it and shifts later elements. Setting an element that does not exist has no effect: append to
    /// `elements`.
    public subscript(index: Int) -> StateJSON? {
        get {
            guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
            return elements[index]
        }
        _modify {
            guard case .array(var elements) = self, elements.indices.contains(index) else {
                var nothing: StateJSON?
                yield &nothing
                return
            }
            self = .null
            var value: StateJSON? = .null
            swap(&value!, &elements[index])
            defer {
                if let value { elements[index] = value } else { elements.remove(at: index) }
                self = .array(elements)
            }
            yield &value
        }
    }

    /// The elements of an array; nil for another kind of value. Setting them makes this an array; setting nil has no effect.
    public var elements: [StateJSON]? {
        get {
            guard case .array(let elements) = self else { return nil }
            return elements
        }
        _modify {
            var elements: [StateJSON]?
            if case .array(let own) = self {
                elements = own
                self = .array([])
            }
            defer { if let elements { self = .array(elements) } }
            yield &elements
        }
    }

    /// The members of an object; nil for another kind of value. Setting them makes this an object; setting nil has no effect.
    public var members: Object? {
        get {
            guard case .object(let members) = self else { return nil }
            return members
        }
        _modify {
            var members: Object?
            if case .object(let own) = self {
                members = own
                self = .object([:])
            }
            defer { if let members { self = .object(members) } }
            yield &members
        }
    }

    /// Changes each element of an array, or the value of each member of an object; has no effect on other kinds of values.
    ///
    /// - Throws: the error of `change`; elements before it are changed then.
    public mutating func mutateEach(_ change: (inout StateJSON) throws -> Void) rethrows {
        switch self {
        case .array(var elements):
            self = .null
            defer { self = .array(elements) }
            for index in elements.indices { try change(&elements[index]) }
        case .object(var members):
            self = .null
            defer { self = .object(members) }
            for name in members.names { try change(&members[name]!) }
        default: return
        }
    }

    public static func == (one: Self, other: Self) -> Bool {
        switch (one, other) {
        case (.null, .null): true
        case (.bool(let one), .bool(let other)): one == other
        case (.number(let one), .number(let other)): one == other
        case (.string(let one), .string(let other)): one.isSameBytes(as: other)
        case (.array(let one), .array(let other)): one == other
        case (.object(let one), .object(let other)): one == other
        default: false
        }
    }

    public func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .bool(let bool): hasher.combine(bool)
        case .number(let number): hasher.combine(number)
        case .string(let text): text.hashBytes(into: &hasher)
        case .array(let elements): hasher.combine(elements)
        case .object(let members): hasher.combine(members)
        }
    }
}

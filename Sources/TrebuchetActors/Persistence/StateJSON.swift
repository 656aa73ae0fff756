internal import Platform

/// JSON of a persisted state, to be changed by `migrate:`.
///
///     json["title"] = json["name"]
///     json["name"] = nil
///     json["todos"]?.changeEach { $0["priority"] = 1 }
///
/// Nothing is lost in it that it is not told to change: numbers are kept as the text that they are, and names are what their bytes
/// are.
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
    /// The member of this name; nil when there is none, or this is no object.
    ///
    /// Setting it to nil takes it away, setting it to `.null` does not. What is no object stays as it is: make it one first, with
    /// `= [:]`.
    public subscript(name: String) -> StateJSON? {
        get {
            guard case .object(let members) = self else { return nil }
            return members[name]
        }
        // In place: what is within is not copied for each of its changes.
        _modify {
            guard case .object(var members) = self else {
                var nothing: StateJSON?
                yield &nothing
                return
            }
            self = .null
            var value = members.take(name)
            defer {
                members[name] = value
                self = .object(members)
            }
            yield &value
        }
    }

    /// The element at this index, from 0; nil when there is none, or this is no array.
    ///
    /// Setting it to nil takes it away, and those behind it move up. Where there is no element nothing is set: append to `elements`.
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

    /// The elements of an array; nil for anything else. Setting them makes it an array, setting nil does nothing.
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

    /// The members of an object; nil for anything else. Setting them makes it an object, setting nil does nothing.
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

    /// Changes each element of an array, or the value of each member of an object; of anything else there is none.
    ///
    /// - Throws: what `change` throws; those before it are changed then.
    public mutating func changeEach(_ change: (inout StateJSON) throws -> Void) rethrows {
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

internal import Bytes

/// Merge patches (RFC 7396): objects with the changed members, and null for removed members.
extension JSONValue {
    /// Returns this value with the patch applied.
    func merging(_ patch: JSONValue) -> JSONValue {
        guard case .object(let changes) = patch else { return patch }
        guard case .object(let members) = self else { return .object(JSONObject().merging(changes)) }
        return .object(members.merging(changes))
    }

    /// Returns the patch that turns this value into `other`, or nil when there is none: a patch cannot set null, and only
    /// objects can be patched in part.
    package func mergePatch(to other: JSONValue) -> JSONValue? {
        guard case .object(let before) = self, case .object(let after) = other else { return nil }
        return before.mergePatch(to: after).map { .object($0) }
    }
}

extension JSONObject {
    /// Returns this object with the patch applied.
    package func merging(_ patch: JSONObject) -> JSONObject { changed(by: patch, mergesMembers: true) }

    /// Returns this object with members replaced, and without those that are null in `changes`.
    package func setting(_ changes: JSONObject) -> JSONObject { changed(by: changes, mergesMembers: false) }

    private func changed(by changes: JSONObject, mergesMembers: Bool) -> JSONObject {
        withParts { own in
            changes.withParts { changes in
                var changed = JSONObjectBuilder(like: own)
                var next = 0
                for index in 0..<changes.count {
                    let (name, value) = (changes.name(index), changes.value(index))
                    let place = own.place(of: name)
                    changed.append(own, next..<place.index)
                    next = place.index + (place.found == nil ? 0 : 1)
                    if CanonicalJSON.isNull(value) { continue }
                    guard mergesMembers, CanonicalJSON.isObject(value) else {
                        changed.append(name, value)
                        continue
                    }
                    let before = place.found.map { own.value($0) }.flatMap {
                        CanonicalJSON.isObject($0) ? $0 : nil
                    }
                    let depth = Swift.max(own.depth, changes.depth)
                    changed.append(
                        name, depth: depth, hasWideNumbers: own.hasWideNumbers || changes.hasWideNumbers
                    ) { text in
                        CanonicalJSON.emptyObject.withUnsafeBytes { empty in
                            _ = CanonicalJSON.appendMerged(before ?? empty, at: 0, value, at: 0, to: &text)
                        }
                    }
                }
                changed.append(own, next..<own.count)
                return changed.finish()
            }
        }
    }

    /// Returns the patch that turns this object into `other`, or nil when there is none.
    func mergePatch(to other: JSONObject) -> JSONObject? {
        var text = ByteBuffer()
        text.append(UInt8(ascii: "{"))
        // The names of the objects whose members are being written.
        var open: ArraySlice<UnsafeRawBufferPointer> = []
        let isPossible = eachDifference(to: other) { path, _, new in
            if let new, CanonicalJSON.hasNull(new) { return false }
            let parents = path.dropLast()
            let common = zip(open, parents).prefix { $0.hasSameBytes($1) }.count
            for _ in common..<open.count { text.append(UInt8(ascii: "}")) }
            if text.bytes[text.count - 1] != UInt8(ascii: "{") { text.append(UInt8(ascii: ",")) }
            for (depth, name) in path.enumerated().dropFirst(common) {
                text.append(UInt8(ascii: "\""))
                text.append(name)
                text.append((depth < parents.count ? "\":{" : "\":") as StaticString)
            }
            if let new { text.append(new) } else { text.append(CanonicalJSON.null) }
            open = parents
            return true
        }
        guard isPossible else { return nil }
        for _ in 0...open.count { text.append(UInt8(ascii: "}")) }
        return JSONObject(canonical: text.bytes)
    }

    /// Calls `body` with the differences to another object, in the order of their paths; objects on both sides are compared
    /// member by member. Each byte is read once, whatever the depth. Ends when `body` returns false, and returns false then.
    package func eachDifference(to other: JSONObject, _ body: CanonicalJSON.DifferenceHandler) -> Bool {
        var path: [UnsafeRawBufferPointer] = []
        return eachDifferentMember(to: other) { name, old, new in
            path.append(name)
            defer { path.removeLast() }
            guard let old, let new, CanonicalJSON.isObject(old), CanonicalJSON.isObject(new) else {
                return body(path, old, new)
            }
            return CanonicalJSON.eachDifference(old, at: 0, new, at: 0, path: &path, body) != nil
        }
    }

    /// Returns the object with the value at a path of names set, or removed; nil when the path does not exist.
    ///
    /// - Parameters:
    ///   - value: a canonical text; nil for removal.
    ///   - path: not empty.
    package func setting(_ value: UnsafeRawBufferPointer?, at path: ArraySlice<String>) -> JSONObject? {
        let names = path.map { name in JSONObjectParts.withCanonical(name) { Array($0) } }
        return names[0].withUnsafeBytes { name in
            withParts { own in
                let place = own.place(of: name)
                var changed = JSONObjectBuilder(like: own)
                changed.append(own, 0..<place.index)
                if names.count == 1 {
                    guard value != nil || place.found != nil else { return nil }
                    if let value { changed.append(name, value) }
                } else {
                    guard let member = place.found.map({ own.value($0) }), CanonicalJSON.isObject(member) else {
                        return nil
                    }
                    var text = ByteBuffer(capacity: member.count + (value?.count ?? 0) + 64)
                    guard CanonicalJSON.appendSetting(member, names[1...], value, to: &text) else { return nil }
                    changed.append(name, text.bytes)
                }
                changed.append(own, place.index + (place.found == nil ? 0 : 1)..<own.count)
                return changed.finish()
            }
        }
    }

    /// Calls `body` with each member that `other` has not, has in addition, or has with another value, in the order of the
    /// names. Ends when `body` returns false, and returns false then.
    private func eachDifferentMember(
        to other: JSONObject,
        _ body: (
            _ name: UnsafeRawBufferPointer, _ old: UnsafeRawBufferPointer?, _ new: UnsafeRawBufferPointer?
        ) -> Bool
    ) -> Bool {
        withParts { old in
            other.withParts { new in
                var (left, right) = (0, 0)
                while left < old.count || right < new.count {
                    let order =
                        left == old.count
                        ? 1
                        : right == new.count ? -1 : CanonicalJSON.compareNames(old.name(left), new.name(right))
                    if order < 0 {
                        guard body(old.name(left), old.value(left), nil) else { return false }
                        left += 1
                    } else if order > 0 {
                        guard body(new.name(right), nil, new.value(right)) else { return false }
                        right += 1
                    } else {
                        let (before, after) = (old.value(left), new.value(right))
                        if !before.hasSameBytes(after), !body(old.name(left), before, after) { return false }
                        (left, right) = (left + 1, right + 1)
                    }
                }
                return true
            }
        }
    }

    /// The object without members that are null.
    package var withoutNulls: JSONObject {
        withParts { parts in
            guard (0..<parts.count).contains(where: { CanonicalJSON.isNull(parts.value($0)) }) else {
                return self
            }
            var remaining = JSONObjectBuilder(like: parts)
            for index in 0..<parts.count where !CanonicalJSON.isNull(parts.value(index)) {
                remaining.append(parts, index..<index + 1)
            }
            return remaining.finish()
        }
    }
}

/// Changes in place, as migrations of persisted states make them.
extension JSONValue {
    /// The member with this name; nil if there is none, or if this is not an object.
    ///
    /// Setting nil removes it; setting `.null` does not. Setting a member of another kind of value has no effect: make it an
    /// object first, with `= [:]`. Each set moves the text of the object behind the member.
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

    /// The members of an object; nil for another kind of value. Setting them makes this an object. Assigning nil has no effect; an
    /// `inout` use that leaves nil makes an object null.
    public var members: JSONObject? {
        get { if case .object(let members) = self { members } else { nil } }
        set { if let newValue { self = .object(newValue) } }
        // In place, so that setting a member does not copy the others.
        _modify {
            var members = members
            if members != nil { self = .null }
            defer { if let members { self = .object(members) } }
            yield &members
        }
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

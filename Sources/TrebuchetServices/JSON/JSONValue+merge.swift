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
    func mergePatch(to other: JSONValue) -> JSONValue? {
        guard case .object(let before) = self, case .object(let after) = other else { return nil }
        return before.mergePatch(to: after).map { .object($0) }
    }
}

extension JSONObject {
    /// Returns this object with the patch applied.
    func merging(_ patch: JSONObject) -> JSONObject { changed(by: patch, mergesMembers: true) }

    /// Returns this object with members replaced, and without those that are null in `changes`.
    func setting(_ changes: JSONObject) -> JSONObject { changed(by: changes, mergesMembers: false) }

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
                    let member = before.map { JSONObject(canonical: $0) } ?? JSONObject()
                    member.merging(JSONObject(canonical: value)).withText { changed.append(name, $0) }
                }
                changed.append(own, next..<own.count)
                return changed.finish()
            }
        }
    }

    /// Returns the patch that turns this object into `other`, or nil when there is none.
    func mergePatch(to other: JSONObject) -> JSONObject? {
        var patch = JSONObjectBuilder()
        let isPossible = eachDifference(to: other) { name, old, new in
            guard let new else {
                CanonicalJSON.null.withUnsafeBytes { patch.append(name, $0) }
                return true
            }
            if let old, CanonicalJSON.isObject(old), CanonicalJSON.isObject(new) {
                guard let change = JSONObject(canonical: old).mergePatch(to: JSONObject(canonical: new))
                else {
                    return false
                }
                change.withText { patch.append(name, $0) }
                return true
            }
            guard !CanonicalJSON.hasNull(new) else { return false }
            patch.append(name, new)
            return true
        }
        return isPossible ? patch.finish() : nil
    }

    /// Calls `body` with each member that `other` has not, has in addition, or has with another value, in the order of the
    /// names. Ends when `body` returns false, and returns false then.
    func eachDifference(
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
    var withoutNulls: JSONObject {
        withParts { parts in
            guard (0..<parts.count).contains(where: { CanonicalJSON.isNull(parts.value($0)) }) else {
                return self
            }
            var kept = JSONObjectBuilder(like: parts)
            for index in 0..<parts.count where !CanonicalJSON.isNull(parts.value(index)) {
                kept.append(parts, index..<index + 1)
            }
            return kept.finish()
        }
    }
}

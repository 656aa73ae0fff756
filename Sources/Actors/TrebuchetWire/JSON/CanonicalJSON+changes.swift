internal import Bytes

/// Changes of canonical objects, in one pass over their texts.
extension CanonicalJSON {
    static let emptyObject = Array("{}".utf8)

    /// Appends an object with a merge patch applied (RFC 7396).
    ///
    /// - Parameters:
    ///   - start: the index of the object's opening brace.
    ///   - patchStart: that of the patch.
    /// - Returns: the indices behind the object and behind the patch.
    @discardableResult
    static func appendMerged(
        _ object: UnsafeRawBufferPointer, at start: Int, _ patch: UnsafeRawBufferPointer, at patchStart: Int,
        to text: inout ByteBuffer
    ) -> (end: Int, patchEnd: Int) {
        var old = CanonicalMembers(object, of: start)
        var changes = CanonicalMembers(patch, of: patchStart)
        text.append(UInt8(ascii: "{"))
        let first = text.count
        func separate(_ text: inout ByteBuffer) { if text.count > first { text.append(UInt8(ascii: ",")) } }
        while old.name != nil || changes.name != nil {
            let order = compareNames(old.name, changes.name)
            if order < 0 {
                let end = old.valueEnd()
                separate(&text)
                text.append(old.member(to: end))
                old.advance(behind: end)
                continue
            }
            var patchEnd = changes.value
            if changes.isNull {
                patchEnd += 4
            } else {
                separate(&text)
                text.append(UnsafeRawBufferPointer(rebasing: patch[changes.start..<changes.value]))
                if order == 0, changes.isObject, old.isObject {
                    let ends = appendMerged(object, at: old.value, patch, at: changes.value, to: &text)
                    old.advance(behind: ends.end)
                    changes.advance(behind: ends.patchEnd)
                    continue
                }
                if changes.isObject {
                    patchEnd = emptyObject.withUnsafeBytes {
                        appendMerged($0, at: 0, patch, at: changes.value, to: &text).patchEnd
                    }
                } else {
                    patchEnd = changes.valueEnd()
                    text.append(changes.value(to: patchEnd))
                }
            }
            if order == 0 { old.advance(behind: old.valueEnd()) }
            changes.advance(behind: patchEnd)
        }
        text.append(UInt8(ascii: "}"))
        return (old.end(), changes.end())
    }

    /// Compares names, nil behind all others.
    private static func compareNames(_ one: UnsafeRawBufferPointer?, _ other: UnsafeRawBufferPointer?) -> Int {
        guard let one else { return 1 }
        guard let other else { return -1 }
        return compareNames(one, other)
    }

    /// Receives the value at a path of names that one object has not, has in addition, or has with another value. Returns false
    /// to end the comparison.
    package typealias DifferenceHandler = (
        _ path: [UnsafeRawBufferPointer], _ old: UnsafeRawBufferPointer?, _ new: UnsafeRawBufferPointer?
    ) -> Bool

    /// Calls `body` with the differences of two objects, in the order of their paths. Objects on both sides are compared member
    /// by member.
    ///
    /// - Parameters:
    ///   - start: the index of an opening brace.
    ///   - path: the path of the objects.
    /// - Returns: the indices behind the objects; nil when `body` has returned false.
    static func eachDifference(
        _ old: UnsafeRawBufferPointer, at start: Int, _ new: UnsafeRawBufferPointer, at newStart: Int,
        path: inout [UnsafeRawBufferPointer], _ body: DifferenceHandler
    ) -> (end: Int, newEnd: Int)? {
        var left = CanonicalMembers(old, of: start)
        var right = CanonicalMembers(new, of: newStart)
        while left.name != nil || right.name != nil {
            let order = compareNames(left.name, right.name)
            guard let name = order <= 0 ? left.name : right.name else { break }
            path.append(name)
            defer { path.removeLast() }
            if order == 0, left.isObject, right.isObject {
                guard let ends = eachDifference(old, at: left.value, new, at: right.value, path: &path, body) else {
                    return nil
                }
                left.advance(behind: ends.end)
                right.advance(behind: ends.newEnd)
                continue
            }
            let ends = (order <= 0 ? left.valueEnd() : 0, order >= 0 ? right.valueEnd() : 0)
            let before = order <= 0 ? left.value(to: ends.0) : nil
            let after = order >= 0 ? right.value(to: ends.1) : nil
            let isSame = if let before, let after { before.hasSameBytes(after) } else { false }
            guard isSame || body(path, before, after) else { return nil }
            if order <= 0 { left.advance(behind: ends.0) }
            if order >= 0 { right.advance(behind: ends.1) }
        }
        return (left.end(), right.end())
    }

    /// Appends an object with the value at a path of names set, or removed.
    ///
    /// - Parameters:
    ///   - path: names as they are in the text, without quotes; not empty.
    ///   - value: nil for removal.
    /// - Returns: false when the path does not exist; nothing was appended then.
    static func appendSetting(
        _ object: UnsafeRawBufferPointer, _ path: ArraySlice<[UInt8]>, _ value: UnsafeRawBufferPointer?,
        to text: inout ByteBuffer
    ) -> Bool {
        var members = CanonicalMembers(object, of: 0)
        for (depth, name) in path.enumerated() {
            let order = name.withUnsafeBytes { name in
                while let present = members.name {
                    let order = compareNames(present, name)
                    if order >= 0 { return order }
                    members.advance(behind: members.valueEnd())
                }
                return 1
            }
            if depth == path.count - 1 {
                return appendSetting(object, members, name, isPresent: order == 0, value, to: &text)
            }
            guard order == 0, members.isObject else { return false }
            members = CanonicalMembers(object, of: members.value)
        }
        return false
    }

    /// - Parameter members: at the member with the name, or at the first one behind it.
    private static func appendSetting(
        _ object: UnsafeRawBufferPointer, _ members: CanonicalMembers, _ name: [UInt8], isPresent: Bool,
        _ value: UnsafeRawBufferPointer?, to text: inout ByteBuffer
    ) -> Bool {
        func append(_ range: Range<Int>, _ text: inout ByteBuffer) {
            text.append(UnsafeRawBufferPointer(rebasing: object[range]))
        }
        switch (isPresent, value) {
        case (true, let value?):
            append(0..<members.value, &text)
            text.append(value)
            append(members.valueEnd()..<object.count, &text)
        case (true, nil):
            var (start, end) = (members.start, members.valueEnd())
            // One comma goes too: the one behind the member, or the one before the last member.
            if object[end] == UInt8(ascii: ",") {
                end += 1
            } else if object[start - 1] == UInt8(ascii: ",") {
                start -= 1
            }
            append(0..<start, &text)
            append(end..<object.count, &text)
        case (false, let value?):
            append(0..<members.start, &text)
            let isLast = members.name == nil
            if isLast, object[members.start - 1] != UInt8(ascii: "{") { text.append(UInt8(ascii: ",")) }
            text.append(UInt8(ascii: "\""))
            text.append(name)
            text.append("\":" as StaticString)
            text.append(value)
            if !isLast { text.append(UInt8(ascii: ",")) }
            append(members.start..<object.count, &text)
        case (false, nil): return false
        }
        return true
    }

    /// Returns whether the value or a member of its objects is null. Array elements do not count: a merge patch replaces arrays
    /// as a whole.
    static func hasNull(_ value: UnsafeRawBufferPointer) -> Bool {
        guard isObject(value) else { return isNull(value) }
        return hasNull(value, at: 0) == nil
    }

    /// Returns the index behind the object; nil when it has a null.
    private static func hasNull(_ text: UnsafeRawBufferPointer, at start: Int) -> Int? {
        var members = CanonicalMembers(text, of: start)
        while members.name != nil {
            if members.isNull { return nil }
            guard let end = members.isObject ? hasNull(text, at: members.value) : members.valueEnd() else { return nil }
            members.advance(behind: end)
        }
        return members.end()
    }
}

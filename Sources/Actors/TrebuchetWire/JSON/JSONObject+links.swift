internal import Bytes
#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

extension JSONObject {
    package enum LinkResult {
        case changed(JSONObject)
        case unchanged
        case notAnArray
    }

    /// Returns the object with a value added to the array in a member unless it is there, or removed from it. Other elements stay, as
    /// text. A missing member is an empty array.
    package func settingLink(_ isLinked: Bool, _ value: JSONValue, in name: String) -> LinkResult {
        JSONObjectParts.withCanonical(name) { name in
            value.json.withUnsafeBytes { value in withParts { $0.settingLink(isLinked, value, in: name) } }
        }
    }
}

extension JSONObjectParts {
    private static let emptyArray = Array("[]".utf8)

    fileprivate func settingLink(
        _ isLinked: Bool, _ value: UnsafeRawBufferPointer, in name: UnsafeRawBufferPointer
    ) -> JSONObject.LinkResult {
        let place = place(of: name)
        return Self.emptyArray.withUnsafeBytes { empty in
            let array = place.found.map { self.value($0) } ?? empty
            guard array.first == UInt8(ascii: "[") else { return .notAnArray }
            guard CanonicalJSON.hasElement(value, in: array) != isLinked else { return .unchanged }
            var scan = CanonicalJSON.Scan()
            _ = scan.end(ofValueAt: 0, value)
            var changed = JSONObjectBuilder(like: self)
            changed.append(self, 0..<place.index)
            // The other elements are not scanned again.
            changed.append(
                name, depth: max(depth, 2 + scan.depth), hasWideNumbers: hasWideNumbers || scan.hasWideNumbers
            ) { text in
                if isLinked {
                    CanonicalJSON.append(array, adding: value, to: &text)
                } else {
                    CanonicalJSON.append(array, removing: value, to: &text)
                }
            }
            changed.append(self, place.index + (place.found == nil ? 0 : 1)..<count)
            return .changed(changed.finish())
        }
    }
}

extension CanonicalJSON {
    /// Returns whether an array has an element with this text.
    static func hasElement(_ value: UnsafeRawBufferPointer, in array: UnsafeRawBufferPointer) -> Bool {
        // Usually the text occurs nowhere. Where it does, it may be a part of an element.
        mayHaveElement(value, in: array) && firstElement(array) { $0.hasSameBytes(value) ? true : nil } ?? false
    }

    /// Returns whether the text of a value occurs behind a bracket or a comma.
    ///
    /// Only there: a value that is compared at each occurrence of its first byte could agree with long parts of a string.
    private static func mayHaveElement(_ value: UnsafeRawBufferPointer, in array: UnsafeRawBufferPointer) -> Bool {
        guard let base = array.baseAddress, let first = value.first else { return false }
        var at = 1
        while at + value.count < array.count, let found = memchr(base + at, Int32(first), array.count - at) {
            let start = UnsafeRawPointer(found) - base
            let before = array[start - 1]
            if before == UInt8(ascii: ",") || before == UInt8(ascii: "["), start + value.count < array.count,
                UnsafeRawBufferPointer(rebasing: array[start..<start + value.count]).hasSameBytes(value)
            {
                return true
            }
            at = start + 1
        }
        return false
    }

    fileprivate static func append(
        _ array: UnsafeRawBufferPointer, adding value: UnsafeRawBufferPointer, to text: inout ByteBuffer
    ) {
        text.append(UnsafeRawBufferPointer(rebasing: array.dropLast()))
        if array.count > 2 { text.append(UInt8(ascii: ",")) }
        text.append(value)
        text.append(UInt8(ascii: "]"))
    }

    fileprivate static func append(
        _ array: UnsafeRawBufferPointer, removing value: UnsafeRawBufferPointer, to text: inout ByteBuffer
    ) {
        text.append(UInt8(ascii: "["))
        var isFirst = true
        eachElement(of: array) { element in
            guard !element.hasSameBytes(value) else { return }
            if !isFirst { text.append(UInt8(ascii: ",")) }
            isFirst = false
            text.append(element)
        }
        text.append(UInt8(ascii: "]"))
    }
}

internal import Bytes

extension JSONObject {
    enum LinkResult {
        case changed(JSONObject)
        case unchanged
        case notAnArray
    }

    /// Returns the object with a value added to the array in a member unless it is there, or removed from it. Other elements stay, as
    /// text. A missing member is an empty array.
    func settingLink(_ isLinked: Bool, _ value: JSONValue, in name: String) -> LinkResult {
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
        // Usually the text occurs nowhere. Where it does, it may be a part of an element. Before the quote of a string, the last
        // byte differs most.
        guard firstIndex(of: value, anchor: max(0, value.count - 2), in: array) != nil else { return false }
        return firstElement(array) { $0.hasSameBytes(value) ? true : nil } ?? false
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

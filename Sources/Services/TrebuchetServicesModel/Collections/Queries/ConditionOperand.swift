/// The value of a condition as canonical text.
struct ConditionOperand: Sendable {
    private let text: [UInt8]
    private let kind: JSONOrder.Kind
    /// True when each of its numbers has only one canonical text.
    private let isExact: Bool
    let hash: Int

    init(_ value: JSONValue) {
        text = value.json
        hash = text.withUnsafeBytes { ValueHash.of($0) }
        kind = JSONOrder.kind(value)
        isExact = text.withUnsafeBytes { text in
            var scan = CanonicalJSON.Scan()
            _ = scan.end(ofValueAt: 0, text)
            return !scan.hasWideNumbers
        }
    }

    func isEqual(to value: UnsafeRawBufferPointer?, isExact isOtherExact: Bool) -> Bool {
        text.withUnsafeBytes { JSONOrder.areEqual($0, value, isExact: isExact && isOtherExact) }
    }

    /// Returns a negative number when the value comes before this one; nil unless both are numbers or both strings.
    func order(after value: UnsafeRawBufferPointer?) -> Int? {
        guard let value, JSONOrder.kind(value) == kind, kind == .number || kind == .text else {
            return nil
        }
        return text.withUnsafeBytes { JSONOrder.compare(value, $0) }
    }

    /// Returns whether both are strings, and the value begins with this one.
    func isPrefix(of value: UnsafeRawBufferPointer?) -> Bool {
        guard let value, JSONOrder.kind(value) == .text, kind == .text else { return false }
        return text.withUnsafeBytes { text in
            // Between the quotes. An escape is complete in both, or in neither.
            let (start, all) = (CanonicalJSON.inside(text), CanonicalJSON.inside(value))
            return start.count <= all.count
                && start.hasSameBytes(UnsafeRawBufferPointer(rebasing: all[..<start.count]))
        }
    }
}

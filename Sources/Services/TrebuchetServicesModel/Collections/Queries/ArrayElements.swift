/// Caches the elements of arrays in a document for `contains` conditions, so that an array is read twice for any number of them.
/// Pure.
package struct ArrayElements {
    /// The hashes of a field's elements.
    private struct Hashes {
        var all: Set<Int> = []
        /// The index of the rest in the text of the array; nil when all are hashed.
        var rest: Int? = 1
    }

    /// By fields; nil after the first condition, which compares the elements.
    private var fields: [FieldPath: Hashes?] = [:]

    package init() {}

    /// Returns whether a field is an array with the operand; nil when the time is up and the call must be repeated.
    ///
    /// - Parameter document: the same document in each call.
    mutating func contain(
        _ operand: ConditionOperand, in field: FieldPath, of document: Document, _ slice: inout ScanSlice
    ) -> Bool? {
        guard let known = fields.updateValue(nil, forKey: field) else {
            return Self.compare(operand, field, document)
        }
        var hashes = known ?? Hashes()
        if let rest = hashes.rest {
            hashes.rest = field.withText(in: document) { text -> Int? in
                guard let text, JSONOrder.kind(text) == .array else { return nil }
                return CanonicalJSON.elements(of: text, from: rest) { element in
                    hashes.all.insert(ValueHash.of(element))
                    return !slice.isOver(afterSteps: 1)
                }
            }
        }
        fields[field] = hashes
        guard hashes.rest == nil else { return nil }
        return hashes.all.contains(operand.hash) && Self.compare(operand, field, document)
    }

    private static func compare(_ operand: ConditionOperand, _ field: FieldPath, _ document: Document) -> Bool {
        let isExact = !document.fields.hasWideNumbers
        return field.withText(in: document) { text in
            guard let text, JSONOrder.kind(text) == .array else { return false }
            return CanonicalJSON.firstElement(text) { operand.isEqual(to: $0, isExact: isExact) ? true : nil } ?? false
        }
    }
}

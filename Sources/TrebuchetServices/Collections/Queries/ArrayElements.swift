/// Caches the elements of arrays in a document for `contains` conditions, so that an array is decoded once for any number of
/// them. Pure.
struct ArrayElements {
    /// The elements of a field's array; empty after the first condition, which reads the array without decoding it.
    private var sets: [FieldPath: Set<JSONValue>?] = [:]

    /// - Parameter document: the same document in each call.
    mutating func contain(_ operand: ConditionOperand, in field: FieldPath, of document: Document)
        -> Bool
    {
        guard let known = sets[field] else {
            sets[field] = .some(nil)
            let isExact = !document.fields.hasWideNumbers
            return field.withText(in: document) { text in
                guard let text, JSONOrder.kind(text) == .array else { return false }
                return CanonicalJSON.firstElement(text) {
                    operand.isEqual(to: $0, isExact: isExact) ? true : nil
                } ?? false
            }
        }
        if let known { return known.contains(operand.identity) }
        guard case .array(let elements)? = field.value(in: document) else {
            sets[field] = .some([])
            return false
        }
        let set = Set(elements.lazy.map { JSONOrder.identity($0) })
        sets[field] = .some(set)
        return set.contains(operand.identity)
    }
}

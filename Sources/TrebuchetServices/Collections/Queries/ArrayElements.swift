/// Caches the elements of arrays in a document for `contains` conditions, so that a long array is scanned once for any number
/// of them. Pure.
struct ArrayElements {
    /// Shorter arrays are scanned each time.
    private static let shortest = 16

    private var sets: [FieldPath: Set<JSONValue>] = [:]

    /// - Parameter document: the same document in each call.
    mutating func contain(_ value: JSONValue, in field: FieldPath, of document: Document) -> Bool {
        if let set = sets[field] { return set.contains(JSONOrder.identity(value)) }
        guard case .array(let elements)? = field.value(in: document) else { return false }
        guard elements.count >= Self.shortest else {
            return elements.contains { JSONOrder.areEqual($0, value) }
        }
        let set = Set(elements.lazy.map { JSONOrder.identity($0) })
        sets[field] = set
        return set.contains(JSONOrder.identity(value))
    }
}

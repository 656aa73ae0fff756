/// What the arrays in a document have, for conditions that ask whether they have something: a long one is gone through once, however
/// many ask. Pure.
struct ArrayElements {
    /// Shorter arrays are gone through each time.
    private static let shortest = 16

    private var sets: [FieldPath: Set<JSONValue>] = [:]

    /// - Parameter document: the same each time.
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

/// What must hold for a field of a document.
public struct QueryCondition: Codable, Hashable, Sendable {
    enum Comparison: String, Codable, Sendable {
        case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual, contains
    }

    let field: String
    let comparison: Comparison
    let value: JSONValue

    /// Null is equal to an absent field.
    public static func equal(_ field: String, _ value: JSONValue) -> Self {
        Self(field: field, comparison: .equal, value: value)
    }
    public static func notEqual(_ field: String, _ value: JSONValue) -> Self {
        Self(field: field, comparison: .notEqual, value: value)
    }
    /// Holds for numbers when the value is one, and for texts when it is one.
    public static func less(_ field: String, _ value: JSONValue) -> Self {
        Self(field: field, comparison: .less, value: value)
    }
    public static func lessOrEqual(_ field: String, _ value: JSONValue) -> Self {
        Self(field: field, comparison: .lessOrEqual, value: value)
    }
    public static func greater(_ field: String, _ value: JSONValue) -> Self {
        Self(field: field, comparison: .greater, value: value)
    }
    public static func greaterOrEqual(_ field: String, _ value: JSONValue) -> Self {
        Self(field: field, comparison: .greaterOrEqual, value: value)
    }
    /// The field is an array that has the value as an element, as after a link.
    public static func contains(_ field: String, _ value: JSONValue) -> Self {
        Self(field: field, comparison: .contains, value: value)
    }

    func holds(for document: Document) -> Bool {
        let present = document.fields[field]
        let order = JSONOrder.compare(present, value)
        switch comparison {
        case .equal: return order == 0
        case .notEqual: return order != 0
        case .contains:
            guard case .array(let elements)? = present else { return false }
            return elements.contains { JSONOrder.compare($0, value) == 0 }
        case .less: return JSONOrder.areComparable(present, value) && order < 0
        case .lessOrEqual: return JSONOrder.areComparable(present, value) && order <= 0
        case .greater: return JSONOrder.areComparable(present, value) && order > 0
        case .greaterOrEqual: return JSONOrder.areComparable(present, value) && order >= 0
        }
    }

    /// Tells different conditions apart.
    var text: String { "\(field)\u{0}\(comparison.rawValue)\u{0}\(value)" }
}

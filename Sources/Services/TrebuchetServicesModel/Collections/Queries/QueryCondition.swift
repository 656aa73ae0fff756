/// A condition on a document.
///
/// A field is a name, `address.city` for a field within a field, or metadata of a document. These are `$creator` (the id of the
/// principal that created it, null without one), `$createdAt` and `$updatedAt` (milliseconds since 1970), `$created` and
/// `$revision` (the numbers of the writes that created and last changed it). A backslash escapes a dot or a backslash in a
/// name, and a `$` at its beginning: `a\.b`.
public struct QueryCondition: Sendable {
    package enum Comparison: String, Sendable {
        case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual, contains, prefix
        case isIn = "in"
    }

    package indirect enum Kind: Hashable, Sendable {
        case field(FieldPath, Comparison, JSONValue)
        /// All conditions of at least one group hold.
        case any([[QueryCondition]])
    }

    /// The maximum number of values of one `in`.
    public static let maximumListCount = 64

    package let kind: Kind
    /// The text of the compared value; for `in`, that of each.
    private let operands: [ConditionOperand]

    init(_ kind: Kind) {
        self.kind = kind
        operands =
            switch kind {
            case .field(_, .isIn, .array(let values)): values.map { ConditionOperand($0) }
            case .field(_, _, let value): [ConditionOperand(value)]
            case .any: []
            }
    }

    private init(_ field: String, _ comparison: Comparison, _ value: JSONValue) {
        self.init(.field(FieldPath(field), comparison, value))
    }

    /// The field has the value. Null is equal to a missing field.
    public static func field(_ field: String, equals value: JSONValue) -> Self { Self(field, .equal, value) }
    /// The negation of ``field(_:equals:)``; so a missing field is unequal to all values but null.
    public static func field(_ field: String, doesNotEqual value: JSONValue) -> Self { Self(field, .notEqual, value) }
    /// The field has one of these values, at most 64.
    public static func field(_ field: String, isIn values: [JSONValue]) -> Self { Self(field, .isIn, .array(values)) }
    /// The field is less than the value. Both must be numbers, or both strings.
    public static func field(_ field: String, isLessThan value: JSONValue) -> Self { Self(field, .less, value) }
    /// The field is less than or equal to the value, as in ``field(_:isLessThan:)``.
    public static func field(_ field: String, isAtMost value: JSONValue) -> Self { Self(field, .lessOrEqual, value) }
    /// The field is greater than the value. Both must be numbers, or both strings.
    public static func field(_ field: String, isGreaterThan value: JSONValue) -> Self { Self(field, .greater, value) }
    /// The field is greater than or equal to the value, as in ``field(_:isGreaterThan:)``.
    public static func field(_ field: String, isAtLeast value: JSONValue) -> Self {
        Self(field, .greaterOrEqual, value)
    }
    /// The field is a string that begins with this one, byte by byte.
    public static func field(_ field: String, hasPrefix text: String) -> Self { Self(field, .prefix, .string(text)) }
    /// The field is an array with the value as an element, as after a link.
    public static func field(_ field: String, contains value: JSONValue) -> Self { Self(field, .contains, value) }
    /// All conditions of at least one group hold. Groups cannot be nested.
    public static func any(_ groups: [QueryCondition]...) -> Self { Self(.any(groups)) }
    /// At least one of these conditions holds.
    public static func any(of conditions: [QueryCondition]) -> Self { Self(.any(conditions.map { [$0] })) }

    func matches(_ document: Document) -> Bool {
        var (cache, slice) = (ConditionCache(), ScanSlice.unlimited)
        guard case .any(let groups) = kind else { return matches(document, &cache, &slice) ?? false }
        return groups.contains { group in group.allSatisfy { $0.matches(document, &cache, &slice) ?? false } }
    }

    /// Evaluates a condition without groups. Returns nil when the time is up and the call must be repeated.
    ///
    /// - Parameter cache: the cache for the same document.
    package func matches(_ document: Document, _ cache: inout ConditionCache, _ slice: inout ScanSlice) -> Bool? {
        switch kind {
        // See `ConditionEvaluation`.
        case .any: return false
        case .field(let field, .contains, _):
            return cache.contain(operands[0], in: field, of: document, &slice)
        case .field(let field, let comparison, _):
            let isExact = !document.fields.hasWideNumbers
            return cache.withText(of: field, in: document) { compare($0, comparison, isExact: isExact) }
        }
    }

    /// - Parameter isExact: whether no number of the value may have another text.
    private func compare(
        _ present: UnsafeRawBufferPointer?, _ comparison: Comparison, isExact: Bool
    ) -> Bool {
        guard let operand = operands.first else { return false }
        switch comparison {
        case .equal: return operand.isEqual(to: present, isExact: isExact)
        case .notEqual: return !operand.isEqual(to: present, isExact: isExact)
        case .isIn: return operands.contains { $0.isEqual(to: present, isExact: isExact) }
        // See `ConditionCache`.
        case .contains: return false
        case .prefix: return operand.isPrefix(of: present)
        case .less: return operand.order(after: present).map { $0 < 0 } ?? false
        case .lessOrEqual: return operand.order(after: present).map { $0 <= 0 } ?? false
        case .greater: return operand.order(after: present).map { $0 > 0 } ?? false
        case .greaterOrEqual: return operand.order(after: present).map { $0 >= 0 } ?? false
        }
    }

    // MARK: Normal form

    var canonical: Self {
        switch kind {
        case .field(let field, .isIn, .array(let values)):
            let sorted = values.map { JSONOrder.identity($0) }.sorted { JSONOrder.compare($0, $1) < 0 }
            let unique = sorted.indices.filter { $0 == 0 || sorted[$0 - 1] != sorted[$0] }.map { sorted[$0] }
            return Self(.field(field, .isIn, .array(unique)))
        case .field(let field, let comparison, let value):
            return Self(.field(field, comparison, JSONOrder.identity(value)))
        case .any(let groups):
            let groups = groups.map { Self.canonical($0) }
            return Self(.any(Self.inOrder(groups) { .array($0.map(\.value)) }))
        }
    }

    /// Returns the conditions without duplicates, in a canonical order.
    static func canonical(_ conditions: [QueryCondition]) -> [QueryCondition] {
        inOrder(conditions.map(\.canonical)) { $0.value }
    }

    private static func inOrder<Part>(_ parts: [Part], _ value: (Part) -> JSONValue) -> [Part] {
        let named = parts.map { (part: $0, text: value($0).json) }
            .sorted { $0.text.lexicographicallyPrecedes($1.text) }
        return named.indices.filter { $0 == 0 || named[$0 - 1].text != named[$0].text }.map { named[$0].part }
    }

    // MARK: Limits

    /// The number of single conditions.
    var count: Int {
        guard case .any(let groups) = kind else { return 1 }
        return groups.reduce(0) { $0 + $1.count }
    }

    func check(isInGroup: Bool = false) throws(CollectionError) {
        switch kind {
        case .field(let field, let comparison, let value):
            try field.check()
            switch (comparison, value) {
            case (.isIn, .array(let values)) where values.count <= Self.maximumListCount: break
            case (.isIn, _): throw .invalidQuery("'in' must have an array of at most \(Self.maximumListCount) values")
            case (.prefix, .string): break
            case (.prefix, _): throw .invalidQuery("'prefix' must have a string")
            default: break
            }
        case .any(let groups):
            guard !isInGroup else { throw .invalidQuery("groups of conditions must not be nested") }
            guard !groups.isEmpty, !groups.contains(where: \.isEmpty) else {
                throw .invalidQuery("'any' must have groups of at least one condition")
            }
            for group in groups { for condition in group { try condition.check(isInGroup: true) } }
        }
    }
}

extension QueryCondition: Hashable {
    public static func == (one: Self, other: Self) -> Bool { one.kind == other.kind }
    public func hash(into hasher: inout Hasher) { hasher.combine(kind) }
}

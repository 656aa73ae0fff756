internal import Platform

/// A query: the conditions on documents of a collection, their order, and their maximum number.
///
///     CollectionQuery(where: [.field("done", equals: .bool(false))], order: [.descending("priority")], limit: 20)
///
/// Documents that are equal in the order are sorted by their creation.
public struct CollectionQuery: Sendable {
    /// The conditions, all of which must hold.
    public let conditions: [QueryCondition]
    /// The sort order: each element sorts documents that are equal in the previous ones. Without elements, documents are sorted
    /// by their creation.
    public let order: [QueryOrder]
    /// The maximum number of documents; nil for all.
    public let limit: Int?
    /// The position in the order after which results start: the cursor of another result (``QueryPage/cursor``); nil for the
    /// beginning.
    public let after: String?
    /// True when the result includes the number of all matching documents.
    public let includesCount: Bool

    static let maximumConditions = 32
    static let maximumOrderLength = 4
    static let largestLimit = 10_000
    /// The maximum size of its JSON in bytes.
    static let maximumBytes = 16 << 10

    /// Creates a query. It may have at most 32 conditions, including those in groups, and 4 orders. Its limit is from 1 to
    /// 10,000, or 0 when it counts; its JSON has at most 16 KiB. The server refuses other queries with `invalidQuery`.
    public init(
        where conditions: [QueryCondition] = [], order: [QueryOrder] = [], limit: Int? = nil, after: String? = nil,
        includesCount: Bool = false
    ) {
        self.conditions = conditions
        self.order = order
        self.limit = limit
        self.after = after
        self.includesCount = includesCount
    }

    /// All documents.
    public static var all: Self { Self() }

    /// The query in a normal form, equal for queries that differ only in the order of their conditions.
    package var canonical: Self {
        Self(
            where: QueryCondition.canonical(conditions), order: order, limit: limit, after: after,
            includesCount: includesCount)
    }

    func check() throws(CollectionError) {
        let count = conditions.reduce(0) { $0 + $1.count }
        guard count <= Self.maximumConditions else {
            throw .invalidQuery("\(count) conditions; at most \(Self.maximumConditions) are allowed")
        }
        for condition in conditions { try condition.check() }
        guard order.count <= Self.maximumOrderLength else {
            throw .invalidQuery("an order by \(order.count) fields; at most \(Self.maximumOrderLength) are allowed")
        }
        for order in order { try order.path.check() }
        if let limit, !(includesCount ? 0...Self.largestLimit : 1...Self.largestLimit).contains(limit) {
            throw .invalidQuery("a limit of \(limit); 1 to \(Self.largestLimit) are allowed, and 0 to count only")
        }
        _ = try start
    }

    /// The position after which it starts.
    package var start: QueryCursor? {
        get throws(CollectionError) {
            guard let after else { return nil }
            return try QueryCursor(after, order)
        }
    }

    package func matches(_ document: Document) -> Bool { conditions.allSatisfy { $0.matches(document) } }

    /// Returns whether one document comes before another; no two are at the same position.
    package func precedes(_ one: Document, _ other: Document) -> Bool { order.precedes(one, other) }
}

/// Strings are compared by their bytes.
extension CollectionQuery: Hashable {
    public static func == (one: Self, other: Self) -> Bool {
        one.conditions == other.conditions && one.order == other.order && one.limit == other.limit
            && one.after.map(ByteText.init) == other.after.map(ByteText.init)
            && one.includesCount == other.includesCount
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(conditions)
        hasher.combine(order)
        hasher.combine(limit)
        hasher.combine(after.map(ByteText.init))
        hasher.combine(includesCount)
    }
}

/// A sort order by one field, which is named as in a ``QueryCondition``. Missing values come first, then false, true, numbers,
/// strings by their first 512 bytes, arrays and objects; all arrays are equal, and so are all objects.
public struct QueryOrder: Hashable, Sendable {
    package let path: FieldPath
    /// True when the largest value comes first.
    public let isDescending: Bool

    /// The name of the field.
    public var field: String { path.text }

    init(_ field: String, isDescending: Bool) {
        path = FieldPath(field)
        self.isDescending = isDescending
    }

    /// Sorts the smallest value first; documents without the field come before all others.
    public static func ascending(_ field: String) -> Self { Self(field, isDescending: false) }
    /// Sorts the largest value first; documents without the field come after all others.
    public static func descending(_ field: String) -> Self { Self(field, isDescending: true) }
}

extension [QueryOrder] {
    /// Returns whether one document comes before another; no two are at the same position.
    package func precedes(_ one: Document, _ other: Document) -> Bool {
        for order in self {
            let sign = order.path.withText(in: one) { one in
                order.path.withText(in: other) { JSONOrder.comparePlaces(one, $0) }
            }
            if sign != 0 { return (sign < 0) != order.isDescending }
        }
        guard one.creationRevision == other.creationRevision else {
            return one.creationRevision < other.creationRevision
        }
        return one.id < other.id
    }
}

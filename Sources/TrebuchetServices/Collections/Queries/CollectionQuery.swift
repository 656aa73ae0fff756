internal import Platform

/// Which documents of a collection, in which order, and how many.
///
///     CollectionQuery(where: [.equal("done", .bool(false))], order: [.descending("priority")], limit: 20)
///
/// Documents that are equal in what the order names come as they were created.
public struct CollectionQuery: Sendable {
    /// What must hold, all of it.
    public let conditions: [QueryCondition]
    /// By the first of these, what is equal in that by the second, and so on; empty: as they were created.
    public let order: [QueryOrder]
    /// How many at most, from the first; nil for all.
    public let limit: Int?
    /// Only documents behind this place in the order: a cursor that came with another result (``QueryPage/cursor``); nil for all.
    public let after: String?
    /// Whether the result says how many documents match, those that it does not show too.
    public let counts: Bool

    static let mostConditions = 32
    static let longestOrder = 4
    static let largestLimit = 10_000
    /// Bytes of its JSON.
    static let mostBytes = 16 << 10

    /// At most 32 conditions, those in groups too, and 4 orders; a limit from 1 to 10,000, or 0 where matches are counted; 16 KiB
    /// as JSON. Others are refused with `invalidQuery`.
    public init(
        where conditions: [QueryCondition] = [], order: [QueryOrder] = [], limit: Int? = nil, after: String? = nil,
        counts: Bool = false
    ) {
        self.conditions = conditions
        self.order = order
        self.limit = limit
        self.after = after
        self.counts = counts
    }

    /// All documents.
    public static var all: Self { Self() }

    /// The same query, and the same for queries that differ in the order of their conditions alone.
    var canonical: Self {
        Self(where: QueryCondition.canonical(conditions), order: order, limit: limit, after: after, counts: counts)
    }

    func check() throws(CollectionError) {
        let count = conditions.reduce(0) { $0 + $1.count }
        guard count <= Self.mostConditions else {
            throw .invalidQuery("\(count) conditions; \(Self.mostConditions) are allowed")
        }
        for condition in conditions { try condition.check() }
        guard order.count <= Self.longestOrder else {
            throw .invalidQuery("an order by \(order.count) fields; \(Self.longestOrder) are allowed")
        }
        for order in order { try order.path.check() }
        if let limit, !(counts ? 0...Self.largestLimit : 1...Self.largestLimit).contains(limit) {
            throw .invalidQuery("a limit of \(limit); from 1 to \(Self.largestLimit) is allowed, and 0 to count only")
        }
        _ = try start
    }

    /// The place behind which it begins.
    var start: QueryCursor? {
        get throws(CollectionError) {
            guard let after else { return nil }
            return try QueryCursor(after, order)
        }
    }

    func matches(_ document: Document) -> Bool { conditions.allSatisfy { $0.holds(for: document) } }

    /// Whether one document stands before another; no two are at the same place.
    func precedes(_ one: Document, _ other: Document) -> Bool { order.precedes(one, other) }
}

/// By the bytes of its texts.
extension CollectionQuery: Hashable {
    public static func == (one: Self, other: Self) -> Bool {
        one.conditions == other.conditions && one.order == other.order && one.limit == other.limit
            && one.after.map(ByteText.init) == other.after.map(ByteText.init) && one.counts == other.counts
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(conditions)
        hasher.combine(order)
        hasher.combine(limit)
        hasher.combine(after.map(ByteText.init))
        hasher.combine(counts)
    }
}

/// How documents are ordered by one field, which is named as in a ``QueryCondition``. Absent comes first, then false, true, numbers,
/// texts by their first 512 bytes, arrays and objects; two arrays are equal, and so are two objects.
public struct QueryOrder: Hashable, Sendable {
    let path: FieldPath
    /// Whether the largest comes first.
    public let isDescending: Bool

    /// The field, as it was named.
    public var field: String { path.text }

    init(_ field: String, isDescending: Bool) {
        path = FieldPath(field)
        self.isDescending = isDescending
    }

    /// The smallest first; documents without the field are before all others.
    public static func ascending(_ field: String) -> Self { Self(field, isDescending: false) }
    /// The largest first; documents without the field are behind all others.
    public static func descending(_ field: String) -> Self { Self(field, isDescending: true) }
}

extension [QueryOrder] {
    /// Whether one document stands before another; no two are at the same place.
    func precedes(_ one: Document, _ other: Document) -> Bool {
        for order in self {
            switch JSONOrder.comparePlaces(order.path.value(in: one), order.path.value(in: other)) {
            case 0: continue
            case let sign: return (sign < 0) != order.isDescending
            }
        }
        guard one.created == other.created else { return one.created < other.created }
        return one.id < other.id
    }
}

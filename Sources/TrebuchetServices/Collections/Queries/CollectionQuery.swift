/// Which documents of a collection, in which order, and how many.
///
///     CollectionQuery(where: [.equal("done", .bool(false))], order: [.descending("priority")], limit: 20)
///
/// Documents that are equal in what the order names come as they were created.
public struct CollectionQuery: Codable, Hashable, Sendable {
    /// What must hold, all of it.
    public let conditions: [QueryCondition]
    public let order: [QueryOrder]
    /// How many at most, from the first; nil for all.
    public let limit: Int?

    /// At most 16 conditions and 4 orders; a limit from 1 to 10,000. Others are refused with `invalidQuery`.
    public init(where conditions: [QueryCondition] = [], order: [QueryOrder] = [], limit: Int? = nil) {
        self.conditions = conditions
        self.order = order
        self.limit = limit
    }

    /// All documents.
    public static var all: Self { Self() }

    /// The same query, and the same for queries that differ in the order of their conditions alone.
    var canonical: Self {
        let unique = Set(conditions).sorted { $0.text < $1.text }
        return Self(where: unique, order: order, limit: limit)
    }

    func check() throws(CollectionError) {
        guard conditions.count <= 16 else { throw .invalidQuery("\(conditions.count) conditions; 16 are allowed") }
        guard order.count <= 4 else { throw .invalidQuery("an order by \(order.count) fields; 4 are allowed") }
        if let limit, !(1...10_000).contains(limit) {
            throw .invalidQuery("a limit of \(limit); from 1 to 10,000 is allowed")
        }
        let bytes =
            conditions.reduce(0) { $0 + $1.field.utf8.count + $1.value.byteCount }
            + order.reduce(0) { $0 + $1.field.utf8.count }
        guard bytes <= 4_096 else { throw .invalidQuery("\(bytes) bytes; 4,096 are allowed") }
    }

    func matches(_ document: Document) -> Bool { conditions.allSatisfy { $0.holds(for: document) } }

    /// Whether one document stands before another; no two are at the same place.
    func precedes(_ one: Document, _ other: Document) -> Bool {
        for order in order {
            switch JSONOrder.compare(one.fields[order.field], other.fields[order.field]) {
            case 0: continue
            case let sign: return (sign < 0) != order.isDescending
            }
        }
        return (one.created, one.id) < (other.created, other.id)
    }
}

/// How documents are ordered by one field. Absent comes first, then false, true, numbers, texts, and anything else.
public struct QueryOrder: Codable, Hashable, Sendable {
    public let field: String
    public let isDescending: Bool

    public static func ascending(_ field: String) -> Self { Self(field: field, isDescending: false) }
    public static func descending(_ field: String) -> Self { Self(field: field, isDescending: true) }
}

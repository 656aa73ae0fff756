internal import Platform
internal import Trebuchet

/// The quotas of a collection: the documents and bytes of all, of each principal and of each host. Pure.
///
/// A scope may use its fraction of the limit, by default a sixteenth, and more while at least as much stays free. So a single
/// scope can use a half, the next one half of the rest. Few scopes have much space, and later ones still find some.
struct DocumentQuotas: Sendable {
    struct Usage: Sendable, AdditiveArithmetic {
        var documents = 0
        /// Bytes of JSON.
        var bytes = 0

        static let zero = Self()

        static func + (one: Self, other: Self) -> Self {
            Self(documents: one.documents + other.documents, bytes: one.bytes + other.bytes)
        }

        static func - (one: Self, other: Self) -> Self {
            Self(documents: one.documents - other.documents, bytes: one.bytes - other.bytes)
        }
    }

    private(set) var all = Usage()
    private var scopes = UsageCounts<MutationScope, Usage>()

    /// The number of principals and hosts with documents.
    var scopeCount: Int { scopes.count }

    /// Counts the replacement of a document, for the creator.
    mutating func replace(_ before: Document?, with after: Document?) {
        if let before { count(before, Usage(documents: -1, bytes: -before.encodedByteCount)) }
        if let after { count(after, Usage(documents: 1, bytes: after.encodedByteCount)) }
    }

    private mutating func count(_ document: Document, _ change: Usage) {
        all += change
        if let creator = document.creator { scopes.add(change, to: .principal(ByteText(creator))) }
        if let origin = document.origin { scopes.add(change, to: .host(origin)) }
    }

    /// Throws when there is no room for the replacement of a document.
    ///
    /// - Parameter others: the use of other changes in addition.
    func check(
        _ before: Document?, with after: Document, _ limits: CollectionLimits, beyond others: DocumentQuotas
    ) throws(CollectionError) {
        let all = all + others.all
        let documents = before == nil ? 1 : 0
        let bytes = after.encodedByteCount - (before?.encodedByteCount ?? 0)
        guard documents == 0 || all.documents < limits.documentsPerCollection else {
            throw .tooManyDocuments(limit: limits.documentsPerCollection)
        }
        guard bytes <= 0 || all.bytes + bytes <= limits.collectionBytes else {
            throw .collectionTooLarge(limit: limits.collectionBytes)
        }
        let quotas = [
            (
                after.creator.map { MutationScope.principal(ByteText($0)) }, limits.principalQuotaDivisor,
                "principalQuotaDivisor"
            ),
            (after.origin.map { MutationScope.host($0) }, limits.hostQuotaDivisor, "hostQuotaDivisor"),
        ]
        for (scope, part, setting) in quotas {
            guard let scope else { continue }
            let usage = scopes[scope] + others.scopes[scope]
            let most = Self.most(
                limits.documentsPerCollection, part, free: limits.documentsPerCollection - all.documents - documents)
            guard documents == 0 || usage.documents + documents <= most else {
                throw .shareUsedUp(of: "documents", limit: most, setting: setting)
            }
            let mostBytes = Self.most(limits.collectionBytes, part, free: limits.collectionBytes - all.bytes - bytes)
            guard bytes <= 0 || usage.bytes + bytes <= mostBytes else {
                throw .shareUsedUp(of: "bytes", limit: mostBytes, setting: setting)
            }
        }
    }

    /// At least one; otherwise a small limit would leave no quota at all.
    private static func most(_ limit: Int, _ part: Int, free: Int) -> Int {
        part > 1 ? max(limit / part, free, 1) : limit
    }
}

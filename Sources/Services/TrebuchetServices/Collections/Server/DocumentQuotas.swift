internal import Platform
internal import Trebuchet

/// The quotas of a collection: the documents and bytes of all, of each principal and of each host. Pure.
///
/// A scope may use its fraction of the limit, by default a sixteenth, and more while at least as much stays free. So a single
/// scope can use a half, the next one half of the rest. Few scopes have much space, and later ones still find some.
struct DocumentQuotas: Sendable {
    struct Usage: Sendable, Equatable {
        var documents = 0
        /// Bytes of JSON.
        var bytes = 0

        static func + (one: Self, other: Self) -> Self {
            Self(documents: one.documents + other.documents, bytes: one.bytes + other.bytes)
        }
    }

    private(set) var all = Usage()
    private var principals: [ByteText: Usage] = [:]
    private var hosts: [UInt32: Usage] = [:]

    /// The number of principals and hosts with documents.
    var scopeCount: Int { principals.count + hosts.count }

    /// Counts the replacement of a document, for the creator.
    mutating func replace(_ before: Document?, with after: Document?) {
        if let before { count(before, -1) }
        if let after { count(after, 1) }
    }

    private mutating func count(_ document: Document, _ sign: Int) {
        let bytes = sign * document.encodedByteCount
        Self.addUsage(sign, bytes, to: &all)
        if let creator = document.creator { Self.addUsage(sign, bytes, to: &principals, at: ByteText(creator)) }
        if let origin = document.origin { Self.addUsage(sign, bytes, to: &hosts, at: origin) }
    }

    private static func addUsage<QuotaScope>(
        _ documents: Int, _ bytes: Int, to usages: inout [QuotaScope: Usage], at scope: QuotaScope
    ) {
        addUsage(documents, bytes, to: &usages[scope, default: Usage()])
        if usages[scope] == Usage() { usages[scope] = nil }
    }

    private static func addUsage(_ documents: Int, _ bytes: Int, to usage: inout Usage) {
        usage.documents += documents
        usage.bytes += bytes
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
        let scopes = [
            (
                after.creator.map { Self.usage(of: ByteText($0), in: principals, others.principals) },
                limits.principalQuotaDivisor, "principalQuotaDivisor"
            ),
            (
                after.origin.map { Self.usage(of: $0, in: hosts, others.hosts) }, limits.hostQuotaDivisor,
                "hostQuotaDivisor"
            ),
        ]
        for (usage, part, setting) in scopes {
            guard let usage else { continue }
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

    private static func usage<QuotaScope>(
        of scope: QuotaScope, in usages: [QuotaScope: Usage], _ others: [QuotaScope: Usage]
    ) -> Usage {
        let usage = usages[scope] ?? Usage()
        return others.isEmpty ? usage : usage + (others[scope] ?? Usage())
    }

    /// At least one; otherwise a small limit would leave no quota at all.
    private static func most(_ limit: Int, _ part: Int, free: Int) -> Int {
        part > 1 ? max(limit / part, free, 1) : limit
    }
}

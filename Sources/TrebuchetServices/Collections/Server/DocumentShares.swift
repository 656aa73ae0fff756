internal import Platform
internal import Trebuchet

/// How much of a collection there is, and how much of it is each principal's and each host's. Pure.
///
/// Nobody has more than his part of what all may have, as a sixteenth, unless at least as much is still free: one alone comes to a
/// half, the next to half of what is left. So few need not do with what is meant for many, and who comes later finds room.
struct DocumentShares: Sendable {
    struct Usage: Sendable, Equatable {
        var documents = 0
        /// Of JSON.
        var bytes = 0
    }

    private(set) var all = Usage()
    private var principals: [ByteText: Usage] = [:]
    private var hosts: [UInt32: Usage] = [:]

    /// How many parties have something.
    var partyCount: Int { principals.count + hosts.count }

    /// A document is in the place of another: it counts for who created it.
    mutating func replace(_ before: Document?, with after: Document?) {
        if let before { count(before, -1) }
        if let after { count(after, 1) }
    }

    private mutating func count(_ document: Document, _ sign: Int) {
        let bytes = sign * document.encodedByteCount
        Self.add(sign, bytes, to: &all)
        if let creator = document.creator { Self.add(sign, bytes, to: &principals, at: ByteText(creator)) }
        if let origin = document.origin { Self.add(sign, bytes, to: &hosts, at: origin) }
    }

    private static func add<Party>(_ documents: Int, _ bytes: Int, to usages: inout [Party: Usage], at party: Party) {
        add(documents, bytes, to: &usages[party, default: Usage()])
        if usages[party] == Usage() { usages[party] = nil }
    }

    private static func add(_ documents: Int, _ bytes: Int, to usage: inout Usage) {
        usage.documents += documents
        usage.bytes += bytes
    }

    /// Throws when there is no room for a document in the place of another.
    func check(_ before: Document?, with after: Document, _ limits: CollectionLimits) throws(CollectionError) {
        let documents = before == nil ? 1 : 0
        let bytes = after.encodedByteCount - (before?.encodedByteCount ?? 0)
        guard documents == 0 || all.documents < limits.documentsPerCollection else {
            throw .tooManyDocuments(limit: limits.documentsPerCollection)
        }
        guard bytes <= 0 || all.bytes + bytes <= limits.collectionBytes else {
            throw .collectionTooLarge(limit: limits.collectionBytes)
        }
        let parties = [
            (after.creator.map { principals[ByteText($0)] ?? Usage() }, limits.principalShare, "principalShare"),
            (after.origin.map { hosts[$0] ?? Usage() }, limits.hostShare, "hostShare"),
        ]
        for (usage, part, setting) in parties {
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

    /// One at least: else nobody could have a part of what is only one.
    private static func most(_ limit: Int, _ part: Int, free: Int) -> Int {
        part > 1 ? max(limit / part, free, 1) : limit
    }
}

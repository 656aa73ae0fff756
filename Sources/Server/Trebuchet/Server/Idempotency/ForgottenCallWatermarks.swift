internal import Platform
internal import TrebuchetActors

/// The connections of other nodes whose calls have run here and have no records any more: a late repeat of such a call may have
/// run. A pure value; an answer never changes from true to false.
///
/// The connections that were forgotten last are known by name, with their greatest call. For earlier ones there is a watermark for
/// each node, since a node numbers its connections in ascending order. A repeat of a call that has not run is refused too if its
/// connection is not above the watermark.
///
/// Only the connection's own node can verify a name. A name that a client has used elsewhere is claimed: it counts for the caller's
/// scope instead of the node, and takes no place of verified names. Otherwise invented names would refuse the repeats of all clients
/// of that node.
struct ForgottenCallWatermarks {
    struct Limits {
        /// Verified connections that are known by name.
        var names = 200_000
        /// Claimed connections that are known by name.
        var claimedNames = 100_000
        /// Claimed connections of one scope that are known by name.
        var claimedNamesPerScope = 1_000
        /// Nodes with a watermark.
        var nodes = 1_024
        /// Scopes with a watermark.
        var scopes = 10_000
    }

    private struct Entry {
        /// The greatest call that may have run.
        var call: UInt64
        /// The scope that has claimed the name; nil for a verified one.
        var claimant: QuotaScope?
    }

    private let limits: Limits
    private var entries: [QualifiedCallSessionID: Entry] = [:]
    /// The verified names, the oldest first.
    private var verified = WorkQueue<QualifiedCallSessionID>()
    /// The names that each scope has claimed, the oldest first. Some may be verified or claimed by another scope since.
    private var claimed: [QuotaScope: WorkQueue<QualifiedCallSessionID>] = [:]
    /// Each scope as many times as it has names in `claimed`, in the order of their claims.
    private var claimants = WorkQueue<QuotaScope>()
    private var nodes: Watermarks<UInt64>
    private var scopes: Watermarks<QuotaScope>

    init(_ limits: Limits = Limits()) {
        self.limits = limits
        nodes = Watermarks(capacity: limits.nodes)
        scopes = Watermarks(capacity: limits.scopes)
    }

    /// The number of connections that are known by name.
    var nameCount: Int { entries.count }
    /// The numbers of nodes and scopes with a watermark.
    var watermarkCount: (nodes: Int, scopes: Int) { (nodes.count, scopes.count) }

    /// - Parameter scope: the quota scope of the caller.
    func mayHaveRun(_ call: UInt64, over session: QualifiedCallSessionID, of scope: QuotaScope) -> Bool {
        if let entry = entries[session], call <= entry.call { return true }
        return session.number <= nodes[session.instance] || session.number <= scopes[scope]
    }

    /// Records that calls of a connection may have run and have no records any more.
    ///
    /// - Parameters:
    ///   - call: the greatest of them.
    ///   - scope: the quota scope of the caller.
    ///   - isVerified: whether the name has arrived from its own node.
    mutating func insert(
        _ session: QualifiedCallSessionID, upTo call: UInt64, of scope: QuotaScope, isVerified: Bool
    ) {
        let before = entries[session]
        let wasVerified = before.map { $0.claimant == nil } ?? false
        let claimant = isVerified || wasVerified ? nil : scope
        let isKnown = before != nil && before?.claimant == claimant
        // Before the insertion, which may remove another name but not this one.
        if !isKnown { if let claimant { makeRoom(forClaimOf: claimant) } else { makeRoomForVerified() } }
        // A name counts for one scope.
        if claimant != nil, let other = before?.claimant, other != claimant { scopes.raise(other, to: session.number) }
        entries[session] = Entry(call: max(before?.call ?? 0, call), claimant: claimant)
        guard !isKnown else { return }
        if let claimant { claimed[claimant, default: WorkQueue()].append(session) } else { verified.append(session) }
    }

    private mutating func makeRoomForVerified() {
        guard verified.count >= limits.names else { return }
        let session = verified.removeFirst()
        entries[session] = nil
        nodes.raise(session.instance, to: session.number)
    }

    private mutating func makeRoom(forClaimOf scope: QuotaScope) {
        if claimed[scope]?.count ?? 0 >= limits.claimedNamesPerScope { return removeOldestClaim(of: scope) }
        if claimants.count >= limits.claimedNames { removeOldestClaim(of: claimants.removeFirst()) }
        claimants.append(scope)
    }

    private mutating func removeOldestClaim(of scope: QuotaScope) {
        guard let session = claimed[scope]?.removeFirst() else { return }
        if claimed[scope]?.isEmpty == true { claimed[scope] = nil }
        guard entries[session]?.claimant == scope else { return }
        entries[session] = nil
        scopes.raise(scope, to: session.number)
    }
}

/// The greatest number of each key, in a limited number of buckets that each have a limited number of keys. In a full bucket the
/// smallest number becomes the watermark of all its other keys. A pure value; a watermark never falls.
///
/// The buckets are chosen by a hash with the seed of the process. To refuse the other keys of a bucket, a caller needs more keys with
/// great numbers in it than the bucket has places, and it cannot choose the bucket.
struct Watermarks<Key: Hashable> {
    private struct Bucket {
        var marks: [(key: Key, number: UInt64)] = []
        /// The watermark of keys without a separate one.
        var rest: UInt64 = 0
    }

    /// The maximum number of separate watermarks of a bucket.
    private static var marksPerBucket: Int { 16 }

    private let marksPerBucket: Int
    private var buckets: [Bucket]
    private(set) var count = 0

    init(capacity: Int) {
        marksPerBucket = max(1, min(capacity, Self.marksPerBucket))
        buckets = Array(repeating: Bucket(), count: max(1, capacity / marksPerBucket))
    }

    private func bucket(of key: Key) -> Int {
        var hasher = Hasher()
        hasher.combine(key)
        return Int(UInt(bitPattern: hasher.finalize()) % UInt(buckets.count))
    }

    /// The watermark of a key; 0 if there is none.
    subscript(key: Key) -> UInt64 {
        let found = buckets[bucket(of: key)]
        return max(found.rest, found.marks.first { $0.key == key }?.number ?? 0)
    }

    mutating func raise(_ key: Key, to number: UInt64) {
        let index = bucket(of: key)
        guard number > buckets[index].rest else { return }
        if let known = buckets[index].marks.firstIndex(where: { $0.key == key }) {
            buckets[index].marks[known].number = max(buckets[index].marks[known].number, number)
            return
        }
        buckets[index].marks.append((key, number))
        count += 1
        guard buckets[index].marks.count > marksPerBucket,
            let least = buckets[index].marks.indices.min(by: {
                buckets[index].marks[$0].number < buckets[index].marks[$1].number
            })
        else { return }
        buckets[index].rest = max(buckets[index].rest, buckets[index].marks.remove(at: least).number)
        count -= 1
    }
}

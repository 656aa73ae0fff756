internal import Distributed
internal import Trebuchet

/// The open queries of a collection, each evaluated once for all its readers.
///
/// It is used in its collection's isolation only.
final class OpenQueries {
    /// The maximum number of unused lists that are kept for the next page.
    private static let maximumIdleLists = 8
    /// The bytes that a query counts in addition to its conditions, and those that each byte of its JSON counts.
    private static let (queryOverhead, bytesOfQueryByte) = (4 << 10, 8)
    /// Smaller changes of the memory of a query are not counted.
    private static let precision = 64 << 10

    private struct Reader {
        let caller: CollectionConnectionState
        var queries: [OpenQuery] = []
        /// The handler for the close of its connection, while it reads.
        var closeHandler: CallerConnection.CloseHandler?
    }

    /// Changes that are shown together.
    private struct UnsentChange {
        let changes: [DocumentChange]
        let revision: Int
        /// The index of the first change that the lists do not include yet.
        var next = 0
    }

    private let host: any QueryHost
    /// The beginning of the names of its views.
    private let prefix: String
    private(set) var lists: MatchLists
    private var open: [OpenQuery.Key: OpenQuery] = [:]
    private var byNumber: [Int: OpenQuery] = [:]
    /// The holders whose quotas count the use of the collection.
    private var reservations = QueryQuotas.Reservations()
    /// By the numbers of their lists.
    private var byList: [Int: [OpenQuery]] = [:]
    private var byReader: [CallerConnection: Reader] = [:]
    /// The counted memory of the indexes of fields.
    private var indexes: IndexCharges
    /// Starts at a random number, so that a number from a previous incarnation of the collection does not match another query.
    private var lastNumber = Int.random(in: 0..<1 << 40)
    /// Unused lists, least recently used first, with the number to remove each with.
    private var idleLists: [(list: Int, left: Int)] = []
    /// The number of calls that read now.
    var reading = 0
    /// Changes that the results do not include yet, oldest first.
    private var unsentChanges: [UnsentChange] = []
    /// The number of turns that have updated results; for tests.
    private(set) var updateTurns = 0
    /// Queries that the first of the changes affects.
    private var unpublished: [OpenQuery] = []
    /// The queries of the list that a change is applied to, and the index of the first query that does not include it.
    private var applying: (queries: [OpenQuery], next: Int)?

    init(host: any QueryHost, documents: some Collection<Document>, prefix: String = CollectionView.prefix) {
        self.host = host
        self.prefix = prefix
        lists = MatchLists(documents)
        indexes = IndexCharges(host.memory)
    }

    var isEmpty: Bool { open.isEmpty && reading == 0 && !isShowing }

    func query(_ key: OpenQuery.Key) -> OpenQuery? { open[key] }

    // MARK: Readers

    /// Adds a reader. A new query has no view yet; `begin` creates it.
    func open(
        _ key: OpenQuery.Key, for caller: CollectionConnectionState, mayRead: @escaping @Sendable (Document) -> Bool
    ) throws(CollectionError) -> (query: OpenQuery, isFirstOfConnection: Bool) {
        let isFirst = byReader[caller.connection] == nil
        if let present = open[key] {
            if present.readers[caller.connection] == nil { try addCaller(caller, to: present, isNew: false) }
            return (present, isFirst)
        }
        let window = try QueryWindow(key.query, maximumBytes: host.limits.resultBytes)
        let bytes = Self.queryOverhead + Self.bytesOfQueryByte * EncodedJSON(key.query.value).byteCount
        let charge = CollectionMemoryLedger.Charge(bytes: bytes, holder: caller.holder, client: caller)
        try host.memory.replace([], with: charge)
        let list = lists.acquireList(MatchList.Key(key.query, for: key.reader), mayRead: mayRead)
        let query = OpenQuery(
            key, number: lastNumber + 1, list: list, window: window, charge: charge, prefix: prefix)
        do throws(CollectionError) {
            try addCaller(caller, to: query, isNew: true)
        } catch {
            host.memory.release([charge])
            if let left = lists.release(list) { removeList(list.number, since: left) }
            throw error
        }
        lastNumber += 1
        open[key] = query
        byNumber[lastNumber] = query
        byList[list.number, default: []].append(query)
        return (query, isFirst)
    }

    private func addCaller(_ caller: CollectionConnectionState, to query: OpenQuery, isNew: Bool)
        throws(CollectionError)
    {
        guard caller.reserveUse() else { throw .tooManyQueries(limit: caller.maximumUses) }
        let holder = caller.holder
        do throws(CollectionError) {
            let use = QueryQuotas.Use(holder: reservations.missing(holder), isFirst: isNew && open.isEmpty)
            try host.consumeQuery(query.reservations.missing(holder), isNew: isNew, of: use)
        } catch {
            caller.releaseUse()
            throw error
        }
        query.reservations.insert(holder)
        reservations.insert(holder)
        if let last = query.lastHolder {
            query.lastHolder = nil
            release(last, of: query)
        }
        query.readers[caller.connection] = holder
        byReader[caller.connection, default: Reader(caller: caller)].queries.append(query)
    }

    /// Sets the first result of a query after ``computeFirstResult(of:)``.
    func setFirstResult(_ query: OpenQuery, revision: Int, make: (QueryResult) -> CollectionView) -> CollectionView {
        var result = query.window.result(in: query.list.rows)
        result.revision = revision
        query.resultRevision = revision
        let view = make(result)
        query.view = view
        return view
    }

    /// Computes the first result of a query, after all documents were scanned. Its memory counts for the caller; throws when that
    /// exceeds a limit, so that another reader can count it.
    func computeFirstResult(of query: OpenQuery, for caller: CollectionConnectionState) throws(CollectionError) {
        query.window.computeFirstWindow(in: query.list.rows)
        try count(query, bytes: query.byteCount, caller.holder, caller)
    }

    private func count(
        _ query: OpenQuery, bytes: Int, _ holder: QuotaHolder, _ client: CollectionConnectionState?
    ) throws(CollectionError) {
        let charge = CollectionMemoryLedger.Charge(bytes: bytes, holder: holder, client: client)
        try host.memory.replace([query.charge], with: charge)
        query.charge = charge
    }

    /// Counts the memory of a query that has changed; returns false when a limit refuses it.
    private func recount(_ query: OpenQuery) -> Bool {
        let bytes = query.byteCount
        guard abs(bytes - query.charge.bytes) >= Self.precision else { return true }
        return (try? count(query, bytes: bytes, query.charge.holder, query.charge.client)) != nil
    }

    /// Closes a query for all of its readers, which may open it again.
    private func remove(_ query: OpenQuery) {
        for connection in query.readers.keys {
            if let caller = byReader[connection]?.caller { _ = close(query, for: caller) }
        }
        removeIfUnread(query.number, since: query.emptied)
    }

    /// Counts the memory of a query for another reader when the one that it counts for has closed it.
    private func moveCharge(of query: OpenQuery, from caller: CollectionConnectionState) {
        guard query.charge.client === caller, let (connection, holder) = query.readers.first else { return }
        let charge = CollectionMemoryLedger.Charge(
            bytes: query.charge.bytes, holder: holder, client: byReader[connection]?.caller)
        host.memory.release([query.charge])
        host.memory.add(charge)
        query.charge = charge
    }

    private func release(_ holder: QuotaHolder, of query: OpenQuery) {
        let use = QueryQuotas.Use(holder: reservations.remove(holder), isFirst: open.isEmpty)
        host.releaseQuery(query.reservations.remove(holder), use)
    }

    /// Counts the query of a reader for the current principal of its connection; returns false when that has too many.
    func updateHolder(of query: OpenQuery, to caller: CollectionConnectionState) -> Bool {
        let holder = caller.holder
        guard let before = query.readers[caller.connection], before != holder else { return true }
        let use = QueryQuotas.Use(holder: reservations.missing(holder), isFirst: false)
        let isCounted: Void? = try? host.consumeQuery(query.reservations.missing(holder), isNew: false, of: use)
        guard isCounted != nil else { return false }
        query.reservations.insert(holder)
        reservations.insert(holder)
        release(before, of: query)
        query.readers[caller.connection] = holder
        return true
    }

    /// Removes a reader. Returns the number to remove the query with when that was the last reader, else nil.
    func close(_ query: OpenQuery, for caller: CollectionConnectionState) -> Int? {
        guard let holder = query.readers.removeValue(forKey: caller.connection) else { return nil }
        caller.releaseUse()
        byReader[caller.connection]?.queries.removeAll { $0 === query }
        if byReader[caller.connection]?.queries.isEmpty == true {
            byReader.removeValue(forKey: caller.connection)?.closeHandler?.cancel()
        }
        guard query.readers.isEmpty else {
            release(holder, of: query)
            moveCharge(of: query, from: caller)
            return nil
        }
        query.lastHolder = holder
        query.emptied += 1
        return query.emptied
    }

    /// Removes a query without readers, unless it has had a reader since.
    func removeIfUnread(_ number: Int, since emptied: Int) {
        guard let query = byNumber[number], query.readers.isEmpty, query.emptied == emptied else { return }
        open[query.key] = nil
        byNumber[number] = nil
        byList[query.list.number]?.removeAll { $0 === query }
        if byList[query.list.number]?.isEmpty == true { byList[query.list.number] = nil }
        query.enterStage(.removed)
        host.memory.release([query.charge])
        if let left = lists.release(query.list) { removeList(query.list.number, since: left) }
        if let last = query.lastHolder { release(last, of: query) }
        host.didCloseQuery(query.name)
    }

    func queries(of caller: CollectionConnectionState) -> [OpenQuery] { byReader[caller.connection]?.queries ?? [] }

    /// The reading connections.
    var callers: [CollectionConnectionState] { byReader.values.map(\.caller) }

    /// Returns the positions of a connection's open queries, by query number.
    func resultPositions(for caller: CollectionConnectionState) -> [String: Int]? {
        guard let queries = byReader[caller.connection]?.queries else { return nil }
        var shown: [String: Int] = [:]
        for query in queries where query.view != nil { shown[String(query.number)] = query.resultRevision }
        return shown.isEmpty ? nil : shown
    }

    /// Sets the close handler, which is cancelled when the connection has closed its last query.
    func setCloseHandler(_ handler: CallerConnection.CloseHandler, of caller: CollectionConnectionState) {
        byReader[caller.connection]?.closeHandler = handler
    }

    // MARK: Lists

    /// Builds the index for a list; returns true when that is complete. A new index counts for the caller; above a limit there is
    /// none, and all documents are scanned.
    func prepare(
        _ key: MatchList.Key, for caller: CollectionConnectionState, mayRead: @escaping @Sendable (Document) -> Bool
    ) -> Bool {
        guard let index = lists.index(for: key) else { return true }
        let slots = lists.rows.slots.count
        guard lists.hasIndex(index) || indexes.count(index, slots: slots, for: caller.holder, caller) else {
            return true
        }
        var slice = ScanSlice()
        return lists.continueIndexing(index, mayRead: mayRead, &slice)
    }

    private func removeList(_ number: Int, since left: Int) {
        lists.removeIfUnused(number, since: left)
        indexes.releaseRemoved(lists.hasIndex)
    }

    /// Scans documents for a time slice. Returns true when all were scanned and all noted changes are in the results; then the
    /// list is of one revision.
    func continueScan(_ list: MatchList) -> Bool {
        var slice = ScanSlice()
        // A list must not be scanned between the two states of a document.
        if lists.isApplying, !continueShowing(slice) { return false }
        return lists.continueScan(list, &slice) && continueShowing(slice)
    }

    /// Returns a list for one call.
    func acquireList(_ key: MatchList.Key, mayRead: @escaping @Sendable (Document) -> Bool) -> MatchList {
        lists.acquireList(key, mayRead: mayRead)
    }

    /// Releases the list of a call; it stays available for the next page. Returns the number to remove it with.
    func release(_ list: MatchList) -> Int? {
        guard let left = lists.release(list) else { return nil }
        idleLists.removeAll { $0.list == list.number }
        idleLists.append((list.number, left))
        if idleLists.count > Self.maximumIdleLists {
            let (oldest, left) = idleLists.removeFirst()
            removeList(oldest, since: left)
        }
        return left
    }

    func removeIfUnused(_ list: Int, since left: Int) {
        removeList(list, since: left)
        idleLists.removeAll { $0.list == list && $0.left == left }
    }

    /// The views with their names.
    var views: [(name: String, actor: any DistributedActor)] {
        byNumber.values.compactMap { query in query.view.map { (query.name, $0) } }
    }

    /// Removes all readers and queries.
    func closeAll() {
        for reader in byReader.values { for query in reader.queries { _ = close(query, for: reader.caller) } }
        for (number, query) in byNumber { removeIfUnread(number, since: query.emptied) }
    }

    /// Ends the lists of a closed collection.
    func removeAll() -> MatchLists.DiscardedLists {
        (idleLists, unsentChanges, unpublished, applying) = ([], [], [], nil)
        defer { indexes.releaseRemoved(lists.hasIndex) }
        return lists.removeAll()
    }

    // MARK: Changes

    /// Adds changes for the next results.
    func recordChanges(_ changes: [DocumentChange], revision: Int) {
        if !changes.isEmpty { unsentChanges.append(UnsentChange(changes: changes, revision: revision)) }
    }

    /// True while noted changes are not in all results. The lists are between two revisions until then.
    var isShowing: Bool { !unsentChanges.isEmpty }

    /// The number of noted changes that are not in all results.
    var unshownCount: Int { unsentChanges.reduce(0) { $0 + $1.changes.count } }

    /// Applies noted changes to the affected results for a time slice; returns true when all are applied. Each result shows
    /// changes that were noted together in one turn, so a reader sees all or none of a transaction.
    func continueShowing(_ slice: ScanSlice = ScanSlice()) -> Bool {
        var slice = slice
        if isShowing { updateTurns += 1 }
        while !unsentChanges.isEmpty {
            while unsentChanges[0].next < unsentChanges[0].changes.count {
                if !lists.isApplying { lists.beginApplying(unsentChanges[0].changes[unsentChanges[0].next]) }
                guard continueApplying(&slice) else { return false }
                unsentChanges[0].next += 1
                if slice.isOver { return false }
            }
            while let query = unpublished.popLast() {
                if recount(query) { query.publish(revision: unsentChanges[0].revision) } else { remove(query) }
                if slice.isOver, !unpublished.isEmpty { return false }
            }
            unsentChanges.removeFirst()
            for index in indexes.recount(slots: lists.rows.slots.count) { lists.removeIndex(index) }
            indexes.releaseRemoved(lists.hasIndex)
            if slice.isOver { break }
        }
        return unsentChanges.isEmpty
    }

    private func continueApplying(_ slice: inout ScanSlice) -> Bool {
        lists.continueApplying(&slice) { list, change, slice in
            var (queries, next) = applying ?? (byList[list.number] ?? [], 0)
            applying = nil
            while next < queries.count {
                let query = queries[next]
                next += 1
                guard query.view != nil else { continue }
                let steps = query.window.steps(in: list.rows)
                if let change = query.window.apply(change, in: list.rows) {
                    if query.unpublished == nil { unpublished.append(query) }
                    query.recordChange(change)
                }
                guard slice.isOver(afterSteps: steps), next < queries.count else { continue }
                applying = (queries, next)
                return false
            }
            return true
        }
    }
}

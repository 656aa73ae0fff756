internal import Distributed
internal import Trebuchet

/// What queries ask of the host of their collection.
protocol QueryHost: AnyObject, Sendable {
    var limits: CollectionLimits { get }
    func visitor(_ connection: CallerConnection) -> CollectionVisitor
    /// Who somebody is as a reader, nil where all are alike, under which rules.
    func reading(
        _ principal: Principal?, in collection: String
    ) -> (reader: CollectionReader?, rules: any CollectionRules)
    func takeQuery(_ holder: Holder, isNew: Bool, of use: QueryShares.Use) throws(CollectionError)
    func releaseQuery(_ holder: Holder, _ use: QueryShares.Use)
    func didCloseQuery(_ name: String)
}

/// A connection as collections see it: how many queries it has open, which results it observes, and how fast it reads and writes.
typealias CollectionVisitor = Visitor<CollectionView, CollectionRate>

/// What a connection may do so often.
enum CollectionRate: Hashable {
    /// Calls that open, close and get queries.
    case reads
    case writes
    /// Of a collection with a rate of its own.
    case writesTo(String)
}

/// The queries of a collection that somebody reads, each evaluated once for all its readers.
///
/// It belongs to its collection, and is used in that one's isolation alone.
final class OpenQueries {
    /// Lists that stay ready for the next page after nobody uses them any more.
    private static let mostIdleLists = 8

    private struct Reader {
        let visitor: CollectionVisitor
        var queries: [OpenQuery] = []
        /// What its connection does when it goes, as long as it reads.
        var closeHandler: CallerConnection.CloseHandler?
    }

    /// Changes that are shown together.
    private struct Unshown {
        let changes: [DocumentChange]
        let revision: Int
        /// The first that is not in the lists yet.
        var next = 0
    }

    private let host: any QueryHost
    /// What the names of its views begin with.
    private let prefix: String
    private(set) var lists: MatchLists
    private var open: [OpenQuery.Key: OpenQuery] = [:]
    private var byNumber: [Int: OpenQuery] = [:]
    /// Who keeps the collection in use.
    private var stakes = QueryShares.Stakes()
    /// By the numbers of their lists.
    private var byList: [Int: [OpenQuery]] = [:]
    private var byReader: [CallerConnection: Reader] = [:]
    /// Not from 0 on: what a client was told by a collection that is gone is not to fit another query.
    private var lastNumber = Int.random(in: 0..<1 << 40)
    /// Lists that nobody uses, the longest unused first, with what they are forgotten by.
    private var idleLists: [(list: Int, left: Int)] = []
    /// Calls that read now.
    var reading = 0
    /// Changes that are not in the results yet, the oldest first.
    private var unshown: [Unshown] = []
    /// Queries that the first of them touch.
    private var unpublished: [OpenQuery] = []

    init(host: any QueryHost, documents: some Collection<Document>, prefix: String = CollectionView.prefix) {
        self.host = host
        self.prefix = prefix
        lists = MatchLists(documents)
    }

    var isEmpty: Bool { open.isEmpty && reading == 0 && !isShowing }

    func query(_ key: OpenQuery.Key) -> OpenQuery? { open[key] }

    // MARK: Readers

    /// Notes a reader. A query that nobody had open has no view yet; the rest of `begin` gives it one.
    func open(
        _ key: OpenQuery.Key, for visitor: CollectionVisitor, mayRead: @escaping @Sendable (Document) -> Bool
    ) throws(CollectionError) -> (query: OpenQuery, isNew: Bool, isFirstOfConnection: Bool) {
        let isFirst = byReader[visitor.connection] == nil
        if let present = open[key] {
            if present.readers[visitor.connection] == nil { try add(visitor, to: present, isNew: false) }
            return (present, false, isFirst)
        }
        let window = try QueryWindow(key.query, mostBytes: host.limits.resultBytes)
        let list = lists.use(MatchList.Key(key.query, for: key.reader), mayRead: mayRead)
        let query = OpenQuery(key, number: lastNumber + 1, list: list, window: window, prefix: prefix)
        do throws(CollectionError) {
            try add(visitor, to: query, isNew: true)
        } catch {
            if let left = lists.leave(list) { lists.removeIfUnused(list.number, since: left) }
            throw error
        }
        lastNumber += 1
        open[key] = query
        byNumber[lastNumber] = query
        byList[list.number, default: []].append(query)
        return (query, true, isFirst)
    }

    private func add(_ visitor: CollectionVisitor, to query: OpenQuery, isNew: Bool) throws(CollectionError) {
        guard visitor.enter() else { throw .tooManyQueries(limit: visitor.placeLimit) }
        let holder = visitor.holder
        do throws(CollectionError) {
            let use = QueryShares.Use(holder: stakes.missing(holder), isFirst: isNew && open.isEmpty)
            try host.takeQuery(query.stakes.missing(holder), isNew: isNew, of: use)
        } catch {
            visitor.leave()
            throw error
        }
        query.stakes.add(holder)
        stakes.add(holder)
        if let last = query.lastHolder {
            query.lastHolder = nil
            release(last, of: query)
        }
        query.readers[visitor.connection] = holder
        byReader[visitor.connection, default: Reader(visitor: visitor)].queries.append(query)
    }

    /// All documents were looked at: the query has a result from now on.
    func begin(_ query: OpenQuery, revision: Int, make: (QueryResult) -> CollectionView) -> CollectionView {
        query.window.begin(in: query.list.rows)
        var result = query.window.result(in: query.list.rows)
        result.revision = revision
        query.shown = revision
        let view = make(result)
        query.view = view
        return view
    }

    private func release(_ holder: Holder, of query: OpenQuery) {
        let use = QueryShares.Use(holder: stakes.remove(holder), isFirst: open.isEmpty)
        host.releaseQuery(query.stakes.remove(holder), use)
    }

    /// The number with which it has lost its last reader; nil when it has others.
    func close(_ query: OpenQuery, for visitor: CollectionVisitor) -> Int? {
        guard let holder = query.readers.removeValue(forKey: visitor.connection) else { return nil }
        visitor.leave()
        byReader[visitor.connection]?.queries.removeAll { $0 === query }
        if byReader[visitor.connection]?.queries.isEmpty == true {
            byReader.removeValue(forKey: visitor.connection)?.closeHandler?.cancel()
        }
        guard query.readers.isEmpty else {
            release(holder, of: query)
            return nil
        }
        query.lastHolder = holder
        query.emptied += 1
        return query.emptied
    }

    /// Forgets a query that nobody has begun to read since it lost its last reader.
    func removeIfUnread(_ number: Int, since emptied: Int) {
        guard let query = byNumber[number], query.readers.isEmpty, query.emptied == emptied else { return }
        open[query.key] = nil
        byNumber[number] = nil
        byList[query.list.number]?.removeAll { $0 === query }
        if byList[query.list.number]?.isEmpty == true { byList[query.list.number] = nil }
        query.end(.removed)
        if let left = lists.leave(query.list) { lists.removeIfUnused(query.list.number, since: left) }
        if let last = query.lastHolder { release(last, of: query) }
        host.didCloseQuery(query.name)
    }

    func queries(of visitor: CollectionVisitor) -> [OpenQuery] { byReader[visitor.connection]?.queries ?? [] }

    /// The connections that read.
    var visitors: [CollectionVisitor] { byReader.values.map(\.visitor) }

    /// What the open queries of a connection show, by their numbers.
    func shown(to visitor: CollectionVisitor) -> [String: Int]? {
        guard let queries = byReader[visitor.connection]?.queries else { return nil }
        var shown: [String: Int] = [:]
        for query in queries where query.view != nil { shown[String(query.number)] = query.shown }
        return shown.isEmpty ? nil : shown
    }

    /// What is to be cancelled when a connection has closed its last query.
    func note(_ handler: CallerConnection.CloseHandler, of visitor: CollectionVisitor) {
        byReader[visitor.connection]?.closeHandler = handler
    }

    // MARK: Lists

    /// Goes on with what a list is made of before the list itself; true when that is done.
    func prepare(_ key: MatchList.Key) -> Bool {
        var slice = ScanSlice()
        return lists.prepare(key, &slice)
    }

    /// Looks at documents for some time; true when all were looked at, and all that was noted is shown: what the list has is of one
    /// revision then.
    func goOn(_ list: MatchList) -> Bool {
        var slice = ScanSlice()
        return lists.goOn(list, &slice) && goOnShowing(slice)
    }

    /// A list for one call.
    func use(_ key: MatchList.Key, mayRead: @escaping @Sendable (Document) -> Bool) -> MatchList {
        lists.use(key, mayRead: mayRead)
    }

    /// A call has ended. Its list stays ready for the next page: the number with which that is over.
    func leave(_ list: MatchList) -> Int? {
        guard let left = lists.leave(list) else { return nil }
        idleLists.removeAll { $0.list == list.number }
        idleLists.append((list.number, left))
        if idleLists.count > Self.mostIdleLists {
            let (oldest, left) = idleLists.removeFirst()
            lists.removeIfUnused(oldest, since: left)
        }
        return left
    }

    func removeIfUnused(_ list: Int, since left: Int) {
        lists.removeIfUnused(list, since: left)
        idleLists.removeAll { $0.list == list && $0.left == left }
    }

    /// What is observed of them, by name.
    var views: [(name: String, actor: any DistributedActor)] {
        byNumber.values.compactMap { query in query.view.map { (query.name, $0) } }
    }

    /// Nobody reads any of them any more.
    func closeAll() {
        for reader in byReader.values { for query in reader.queries { _ = close(query, for: reader.visitor) } }
        for (number, query) in byNumber { removeIfUnread(number, since: query.emptied) }
    }

    /// The collection has closed.
    func takeApart() -> MatchLists.Remains {
        (idleLists, unshown, unpublished) = ([], [], [])
        return lists.takeApart()
    }

    // MARK: Changes

    /// What the next results show.
    func note(_ changes: [DocumentChange], revision: Int) {
        if !changes.isEmpty { unshown.append(Unshown(changes: changes, revision: revision)) }
    }

    /// Whether some of what was noted is still to be shown. Lists are between two revisions until then.
    var isShowing: Bool { !unshown.isEmpty }

    /// Brings what was noted into the results that it touches, for some time; true when all is shown. Each result shows what was noted
    /// together in one turn: of writes that belong together a reader sees all or none.
    func goOnShowing(_ slice: ScanSlice = ScanSlice()) -> Bool {
        while !unshown.isEmpty {
            while unshown[0].next < unshown[0].changes.count {
                take(unshown[0].changes[unshown[0].next])
                unshown[0].next += 1
                if slice.isOver { return false }
            }
            while let query = unpublished.popLast() {
                query.publish(revision: unshown[0].revision)
                if slice.isOver, !unpublished.isEmpty { return false }
            }
            unshown.removeFirst()
            if slice.isOver { break }
        }
        return unshown.isEmpty
    }

    private func take(_ change: DocumentChange) {
        let byList = byList
        lists.apply(change) { list, change in
            for query in byList[list.number] ?? [] where query.view != nil {
                guard let change = query.window.apply(change, in: list.rows) else { continue }
                if query.unpublished == nil { unpublished.append(query) }
                query.note(change)
            }
        }
    }
}

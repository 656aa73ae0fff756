internal import Trebuchet

/// The queries of a collection that somebody reads, each evaluated once for all its readers.
///
/// It belongs to its collection, and is used in that one's isolation alone.
struct OpenQueries {
    /// Who reads, where readers are not alike.
    struct Reader: Hashable {
        /// Nil for those who are not signed in.
        let id: String?
    }

    struct Key: Hashable {
        let query: CollectionQuery
        /// Nil where all readers are alike.
        let reader: Reader?
    }

    struct Opened {
        let ticket: QueryTicket
        let view: CollectionView
        /// The connection had no query of the collection open before.
        let isFirstOfConnection: Bool
        /// Nobody has asked for the query before.
        let isNew: Bool
    }

    private struct Open {
        let view: CollectionView
        let ticket: QueryTicket
        var readers: [CallerConnection: CollectionVisitor] = [:]
        /// How often it has lost its last reader.
        var emptied = 0
    }

    private let host: CollectionHost
    private var open: [Key: Open] = [:]

    init(host: CollectionHost) { self.host = host }

    var isEmpty: Bool { open.isEmpty }

    /// - Parameter make: makes the view of a query that nobody reads yet.
    mutating func open(
        _ key: Key, for visitor: CollectionVisitor, revision: Int, make: () -> CollectionView
    ) throws(CollectionError) -> Opened {
        let isFirst = keys(of: visitor).isEmpty
        let isNew = open[key] == nil
        if let present = open[key] {
            if present.readers[visitor.connection] == nil { try visitor.openQuery() }
            present.view.send([], revision: revision, isShown: true)
        } else {
            try visitor.openQuery()
            do throws(CollectionError) {
                try host.reserveQuery()
            } catch {
                visitor.closeQuery()
                throw error
            }
            open[key] = Open(
                view: make(), ticket: QueryTicket(view: CollectionHost.viewPrefix + CollectionSecret.make()))
        }
        open[key]?.readers[visitor.connection] = visitor
        guard let opened = open[key] else { throw .closed }
        return Opened(ticket: opened.ticket, view: opened.view, isFirstOfConnection: isFirst, isNew: isNew)
    }

    /// The number with which it has lost its last reader; nil when it has others.
    mutating func close(_ key: Key, for visitor: CollectionVisitor) -> Int? {
        guard open[key]?.readers.removeValue(forKey: visitor.connection) != nil else { return nil }
        visitor.closeQuery()
        guard open[key]?.readers.isEmpty == true else { return nil }
        open[key]?.emptied += 1
        return open[key]?.emptied
    }

    /// Forgets a query that nobody has begun to read since it lost its last reader.
    mutating func removeIfUnread(_ key: Key, since emptied: Int) {
        guard let present = open[key], present.readers.isEmpty, present.emptied == emptied else { return }
        open[key] = nil
        host.didCloseQuery(present.ticket.view)
    }

    func keys(of visitor: CollectionVisitor) -> [Key] {
        open.filter { $0.value.readers[visitor.connection] != nil }.map(\.key)
    }

    /// Brings changes to all results; the queries of the connections that made them show their number too.
    func show(_ changes: [DocumentChange], revision: Int, for connections: Set<CallerConnection>) {
        for open in open.values {
            let isShown = connections.contains { open.readers[$0] != nil }
            open.view.send(changes, revision: revision, isShown: isShown)
        }
    }
}

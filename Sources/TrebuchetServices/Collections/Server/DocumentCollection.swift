internal import Platform
internal import Trebuchet

/// `collections/<name>`: the documents of a collection, and the commands that change them.
///
/// Commands are done one after the other, as they come. What they change is written to the store together with what else came
/// meanwhile, shown to readers, and only then answered.
@Trebuchet
distributed actor DocumentCollection: ServicePart {
    /// Looks at documents that have expired, at most so many in one turn.
    static let expiredAtOnce = 500
    /// With so many changed documents that wait for the store no more are taken: what the store was busy with is shown in one turn.
    private static let waitingDocuments = 5_000

    let name: String
    let stored: StoredCollection
    let host: CollectionHost
    var table: DocumentTable
    let queries: OpenQueries
    /// Of the last write that is in the store.
    var revision: Int
    /// Of the last one that all results show.
    var shownRevision: Int
    /// The commits of the next batch, and those of the batch that is being written.
    var next = PendingBatch()
    var current: PendingBatch?
    var isWriting = false
    /// Writes what the log is to begin with from now on.
    var copying: Task<Void, Never>?
    /// How often what was done was not kept.
    var failures = 0
    private(set) var isClosed = false
    /// Whether it is to go as soon as nobody uses it.
    private var isLeaving = false
    /// Calls so far, to see whether there were any in a time.
    var calls = 0
    private var restsAlready = false
    /// A commit looks at documents of other collections: those that came later wait for it, since the order counts in which
    /// they came.
    private var isLooking = false
    private var line: [CheckedContinuation<Void, Never>] = []
    /// When the timer rings, in milliseconds since 1970.
    var alarm: Int?
    var timer: Task<Void, Never>?

    init(
        name: String, _ table: DocumentTable, _ stored: StoredCollection, host: CollectionHost,
        actorSystem: TrebuchetActorSystem
    ) {
        self.name = name
        self.table = table
        self.stored = stored
        self.host = host
        queries = OpenQueries(
            host: host, documents: table.documents.values, prefix: host.viewPrefix(name))
        revision = table.revision
        shownRevision = revision
        self.actorSystem = actorSystem
    }

    deinit { timer?.cancel() }

    // MARK: Commands

    /// Does commands in their order, each once however often it comes, and answers when their changes are in the store.
    ///
    /// - Parameters:
    ///   - mutations: each a `DocumentMutation`.
    ///   - client: a secret of the client's making, 16 to 128 bytes; its commands are numbered upwards from 1.
    /// - Returns: what became of them. Of the first ones alone, when the connection may not make as many writes now.
    @Redacted
    distributed func commit(
        _ mutations: [EncodedJSON], from client: String
    ) async throws(CollectionError) -> [MutationOutcome] {
        let visitor = try host.visitor()
        return try await commit(mutations, from: client, of: visitor.connection.principal, visitor)
    }

    private func commit(
        _ mutations: [EncodedJSON], from client: String, of principal: Principal?, _ visitor: CollectionVisitor
    ) async throws(CollectionError) -> [MutationOutcome] {
        guard !isClosed else { throw .closed }
        calls += 1
        defer { closeIfUnused() }
        guard (16...CollectionLimits.longestName).contains(client.utf8.count),
            mutations.count <= CollectionLimits.mutationsPerCall
        else { throw .invalidDocument("a client's name has 16 to 128 bytes, and a call 32 commands at most") }
        guard table.unwrittenCount < Self.waitingDocuments else { throw .rateLimited(retryAfterMilliseconds: 20) }
        table.limits = host.limits(of: name)
        let read: [ReadMutation]
        do throws(CollectionError) {
            read = try ReadMutation.read(mutations, table.limits, at: revision) { writes in
                self.host.takeWrites(writes, of: visitor, to: self.name, table.limits.writesToCollection)
            }
        } catch {
            host.log.refusal(error, of: "writes", in: name, by: visitor.connection)
            throw error
        }
        let targets = Set(read.lazy.flatMap(\.targets)).filter { $0.collection != self.name }
        var isInLine = await standInLine(for: targets)
        defer { if isInLine { leaveLine() } }
        // Where nothing is looked up there is no turn between: commits are done in the order in which they come.
        let found = targets.isEmpty ? [:] : try await host.documents(targets)
        try checkOpen()
        let (host, name, now, rules) = (host, name, host.clock.now(), host.rules)
        let there = found.filter { target, document in
            !document.isExpired(at: now) && host.may(principal, .read, document, in: target.collection)
        }
        var outcomes: [MutationOutcome] = []
        var slice = ScanSlice()
        let failures = self.failures
        for mutation in read {
            if slice.isOver || table.isBatchFull {
                // Others have their turn, and commits that come meanwhile wait for this one.
                (isLooking, isInLine) = (true, true)
                if table.isBatchFull { try await written(for: visitor.connection) } else { await Task.yield() }
                slice = ScanSlice()
                try checkOpen()
                guard self.failures == failures else {
                    throw .storeFailed("what was written just before could not be kept")
                }
            }
            switch mutation {
            case .mutation(let mutation):
                outcomes.append(
                    table.apply(
                        mutation, from: client, creator: principal?.id, origin: table.origin(of: visitor.host),
                        at: now, isThere: { there[$0] != nil },
                        check: { change throws(CollectionError) in try rules.check(principal, change, in: name) }
                    ) { action, document in host.may(principal, action, document, in: name) })
            case .refused(let outcome): outcomes.append(outcome)
            }
            if let error = outcomes.last?.error {
                host.log.refusal(error, of: "a write", in: name, by: visitor.connection)
            }
        }
        showExpired()
        watchForExpiry()
        try await written(for: visitor.connection)
        guard !isClosed else { throw lost }
        // The results of the caller's queries have left before this answer, which says of which write they are.
        if !outcomes.isEmpty { outcomes[outcomes.count - 1].shown = queries.shown(to: visitor) }
        return outcomes
    }

    /// The same, unless the connection is signed in as somebody else: then nothing is done.
    ///
    /// - Parameter account: the id of the principal whose commands these are; empty for somebody who is not signed in.
    @Redacted
    distributed func commit(
        _ mutations: [EncodedJSON], from client: String, as account: String
    ) async throws(CollectionError) -> [MutationOutcome] {
        let visitor = try host.visitor()
        // The same to the end: another thread may sign in somebody else meanwhile.
        let principal = visitor.connection.principal
        guard (principal?.id ?? "").isSameBytes(as: account) else { throw .otherAccount }
        return try await commit(mutations, from: client, of: principal, visitor)
    }

    /// Waits for commits that look at other collections; true for one that others are to wait for.
    private func standInLine(for targets: Set<LinkTarget>) async -> Bool {
        guard isLooking || !targets.isEmpty else { return false }
        guard isLooking else {
            isLooking = true
            return true
        }
        await withCheckedContinuation { line.append($0) }
        return true
    }

    private func leaveLine() {
        guard line.isEmpty else { return line.removeFirst().resume() }
        isLooking = false
    }

    // MARK: Queries

    /// Begins to keep the result of a query up to date for the calling connection, until that closes it or goes.
    ///
    /// What it has written up to now is in the result; what it writes from then on reaches it over the same connection before the
    /// answer does. A connection that opens a query again has opened it once.
    distributed func open(_ query: EncodedJSON) async throws(CollectionError) -> QueryTicket {
        let visitor = try host.visitor()
        guard !isClosed else { throw .closed }
        calls += 1
        defer { closeIfUnused() }
        let (query, reader, mayRead) = try read(query, for: visitor)
        expire()
        let key = OpenQuery.Key(query: query, reader: reader)
        queries.reading += 1
        defer { queries.reading -= 1 }
        while queries.query(key) == nil, !queries.prepare(MatchList.Key(query, for: reader)) { await Task.yield() }
        guard !isClosed else { throw .closed }
        // Opened as somebody else, with other roles, or under other rules.
        for other in queries.queries(of: visitor) where other.key.query == query && other.key != key {
            end(other, visitor)
        }
        let opened = try queries.open(key, for: visitor, mayRead: mayRead)
        if opened.isFirstOfConnection {
            let handler = visitor.connection.onClose { [weak self, weak visitor] in
                Task {
                    guard let visitor else { return }
                    await self?.whenLocal { $0.left(visitor) }
                }
            }
            queries.note(handler, of: visitor)
        }
        watchForExpiry()
        if opened.isNew {
            await begin(opened.query)
        } else if !opened.query.isReady {
            await opened.query.waitUntilFound()
        }
        guard opened.query.isReady, !isClosed else { throw .closed }
        return opened.query.ticket(revision: shownRevision)
    }

    /// Finds what a query shows, and lets clients observe it.
    private func begin(_ query: OpenQuery) async {
        // Each part in a turn of its own; what is written meanwhile is in it.
        while !query.isRemoved, !queries.goOn(query.list) { await Task.yield() }
        guard !query.isRemoved else { return }
        let view = queries.begin(query, revision: revision) { result in
            actorSystem.living(with: id) {
                CollectionView(
                    result, named: query.name, of: query.key.reader, in: name, host, actorSystem: actorSystem)
            }
        }
        await host.expose(view, as: query.name)
        query.end(.ready)
    }

    /// The documents that a query finds now: as many as it asks for, or as one answer has room for.
    ///
    /// - Returns: with a cursor, behind which the next page begins, when there are more.
    distributed func get(_ query: EncodedJSON) async throws(CollectionError) -> QueryPage {
        let visitor = try host.visitor()
        guard !isClosed else { throw .closed }
        calls += 1
        defer { closeIfUnused() }
        let (query, reader, mayRead) = try read(query, for: visitor)
        expire()
        var window = try QueryWindow(query, mostBytes: host.limits.pageBytes)
        let key = MatchList.Key(query, for: reader)
        queries.reading += 1
        defer { queries.reading -= 1 }
        while !queries.prepare(key) { await Task.yield() }
        let list = queries.use(key, mayRead: mayRead)
        defer { leave(list) }
        while !queries.goOn(list) { await Task.yield() }
        // Lists of a collection that has ended meanwhile are empty.
        try checkOpen()
        let documents = window.begin(in: list.rows)
        let cursor = window.hasMore ? documents.last.map { QueryCursor(behind: $0, in: query.order).text } : nil
        return QueryPage(documents: documents, cursor: cursor, count: window.matches, revision: revision)
    }

    /// Its list stays ready for the next page.
    private func leave(_ list: MatchList) {
        guard let left = queries.leave(list) else { return }
        let number = list.number
        after(host.limits.idleQueryTime) { $0.queries.removeIfUnused(number, since: left) }
    }

    /// Ends what `open` began, for the calling connection.
    distributed func close(_ query: EncodedJSON) throws(CollectionError) {
        let visitor = try host.visitor()
        try host.takeRead(of: visitor)
        let query = try CollectionQuery(sent: query).canonical
        let open = queries.queries(of: visitor).first { $0.key.query == query }
        if let open { release(open, visitor) }
        closeIfUnused()
    }

    /// A query as a caller has sent it: looked at after its caller's rate and its size.
    private func read(_ query: EncodedJSON, for visitor: CollectionVisitor) throws(CollectionError) -> (
        query: CollectionQuery, reader: CollectionReader?, mayRead: @Sendable (Document) -> Bool
    ) {
        try host.takeRead(of: visitor)
        let query = try CollectionQuery(sent: query).canonical
        let (name, principal) = (name, visitor.connection.principal)
        let (reader, rules) = host.reading(principal, in: name)
        guard let reader else { return (query, nil, { _ in true }) }
        return (query, reader, { rules.may(principal, .read, $0, in: name) })
    }

    /// What somebody may not read any more, or reads as somebody else from now on, ends: its client opens it anew.
    func rightsChanged(of visitor: CollectionVisitor) {
        let (reader, _) = host.reading(visitor.connection.principal, in: name)
        for query in queries.queries(of: visitor) where query.key.reader != reader { end(query, visitor) }
        closeIfUnused()
    }

    func rulesChanged() {
        table.limits = host.limits(of: name)
        for visitor in queries.visitors { rightsChanged(of: visitor) }
    }

    private func end(_ query: OpenQuery, _ visitor: CollectionVisitor) {
        visitor.connection.endStreams(ofActor: query.name, CollectionView.otherRights)
        release(query, visitor)
    }

    private func left(_ visitor: CollectionVisitor) {
        for query in queries.queries(of: visitor) { release(query, visitor) }
        closeIfUnused()
    }

    private func release(_ query: OpenQuery, _ visitor: CollectionVisitor) {
        guard let emptied = queries.close(query, for: visitor) else { return }
        let number = query.number
        after(host.limits.idleQueryTime) { $0.queries.removeIfUnread(number, since: emptied) }
    }

    private func after(_ time: Duration, _ body: @escaping @Sendable (isolated DocumentCollection) -> Void) {
        guard time > .zero else { return body(self) }
        Task { [weak self] in
            try? await Task.sleep(for: time)
            await self?.whenLocal { collection in
                body(collection)
                collection.closeIfUnused()
            }
        }
    }

    var isUnused: Bool {
        !isClosed && !isWriting && copying == nil && !isLooking && next.isEmpty && !table.hasUnwritten
            && queries.isEmpty
    }

    /// A collection without readers and commands under way goes: at once when it has no documents, else after a time.
    func closeIfUnused() {
        // What had expired before it was loaded.
        startWriting()
        guard isUnused else { return }
        guard table.isEmpty else { return rest() }
        close()
    }

    private func close() {
        guard !isLeaving else { return }
        isLeaving = true
        Task { await host.letGo(self, name) }
    }

    /// Whether it has gone, or stays for somebody who has come.
    func didDecide(_ goes: Bool) {
        isLeaving = false
        // A call that is under way for long looks after it at its end.
        if goes { takeApart() }
    }

    /// Throws where the collection has ended while its caller was suspended. Its table is empty then.
    func checkOpen() throws(CollectionError) {
        guard !isClosed else { throw .closed }
    }

    private var lost: CollectionError {
        .unknownOutcome("collection '\(name)' went to another node while the write was under way")
    }

    /// Ends the collection. A commit whose batch the store has not acknowledged fails.
    func takeApart() {
        isClosed = true
        timer?.cancel()
        current?.fail(lost)
        next.fail(.closed)
        // So many documents are not taken apart on a reactor.
        let (table, lists) = (table, queries.takeApart())
        self.table = DocumentTable(limits: host.limits)
        Task.detached { withExtendedLifetime((table, lists)) {} }
    }

    /// What it was loaded for was no call that it can do.
    func closeIfUncalled() { if calls == 0 { closeIfUnused() } }

    func rest() {
        host.didRest(name)
        guard !restsAlready else { return }
        restsAlready = true
        let (time, before, clock) = (host.limits.idleTime, calls, host.clock)
        Task { [weak self] in
            try? await clock.sleep(time)
            await self?.whenLocal { collection in
                collection.restsAlready = false
                guard collection.isUnused else { return }
                if collection.calls == before { collection.close() } else { collection.rest() }
            }
        }
    }
}

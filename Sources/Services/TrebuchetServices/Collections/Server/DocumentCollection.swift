internal import Platform
internal import Trebuchet

/// A collection `collections/<name>`: its documents, and the commands that change them.
///
/// The commands of a connection are executed one after the other, in the order of their arrival. Commands of other connections do
/// not wait for a command that takes long. Changes are written to the store together with others that arrived meanwhile. Then
/// readers receive them, and only then the commands are answered.
@Trebuchet
distributed actor DocumentCollection: ServiceActor, CollectionInterface {
    /// The maximum number of expired documents that are processed in one turn.
    static let expiredAtOnce = 500
    /// The maximum number of changed documents that wait for the store: they are all shown in one turn after a long store
    /// write.
    private static let waitingDocuments = 5_000

    let name: String
    let stored: StoredCollection
    let host: CollectionHost
    /// The caller that has loaded it; nil for the server.
    let owner: ActivationOwner?
    let memory: CollectionMemory
    var table: DocumentTable
    let queries: OpenQueries
    /// The shard of its reactor, which holds responses.
    private lazy var shard = actorSystem.shard(of: id.home)
    /// The time slices of its reactor.
    lazy var turns = host.turns(on: id.home)
    /// The last write that is in the store.
    var revision: Int
    /// The last write that all results include.
    var visibleRevision: Int
    /// The commits of the next batch, and those of the batch that is being written.
    var next = PendingBatch()
    var current: PendingBatch?
    var isWriting = false
    /// The task that removes expired documents, while a turn was not enough.
    var expiring: Task<Void, Never>?
    /// The task that updates results, while a turn was not enough.
    var updating: Task<Void, Never>?
    /// The task that writes a snapshot of the log.
    var copying: Task<Void, Never>?
    /// The number of failed batches.
    var failures = 0
    var isClosed = false
    /// True once another node owns the collection.
    var hasMoved = false
    /// True while the deactivation of the unused collection is in progress.
    var isDeactivating = false
    /// The number of calls, to detect calls during a wait.
    var calls = 0
    var isIdleTimerRunning = false
    /// True while another collection is being unloaded to make room.
    private var isUnloading = false
    /// The orders of the commits of connections, while one of them is suspended before its end.
    var commitsOfConnections: [CallerConnection: CommitOrder] = [:]
    /// The documents of a transaction that the writes of others have made start again several times.
    var reservation: DocumentReservation?
    /// The time of the timer, in milliseconds since 1970.
    var alarm: Int?
    var timer: Task<Void, Never>?

    init(
        name: String, _ table: DocumentTable, _ stored: StoredCollection, host: CollectionHost,
        owner: ActivationOwner?, memory: CollectionMemory, actorSystem: TrebuchetActorSystem
    ) {
        (self.owner, self.memory) = (owner, memory)
        self.name = name
        self.table = table
        self.stored = stored
        self.host = host
        queries = OpenQueries(
            host: host, documents: table.documents.values, prefix: host.viewPrefix(name))
        revision = table.revision
        visibleRevision = revision
        self.actorSystem = actorSystem
    }

    deinit { timer?.cancel() }

    // MARK: Commands

    /// Executes mutations in their order, each once however often it arrives. Returns when their changes are in the store.
    ///
    /// - Parameters:
    ///   - mutations: each a `DocumentMutation`.
    ///   - client: a secret of the client, 16 to 128 bytes; its mutations are numbered upwards from 1.
    /// - Returns: the outcomes; only those of the first mutations when the connection exceeds its rate.
    @Redacted
    distributed func commit(
        _ mutations: [EncodedJSON], from client: String
    ) async throws(CollectionError) -> [MutationOutcome] {
        let caller = try host.caller()
        return try await commit(mutations, from: client, of: Caller.current?.principal, caller)
    }

    private func commit(
        _ mutations: [EncodedJSON], from client: String, of principal: Principal?, _ caller: CollectionConnectionState
    ) async throws(CollectionError) -> [MutationOutcome] {
        guard !isClosed else { throw .closed }
        calls += 1
        defer { closeIfUnused() }
        guard (16...CollectionLimits.maximumNameLength).contains(client.utf8.count),
            mutations.count <= CollectionLimits.mutationsPerCall
        else { throw .invalidDocument("a client's name must have 16 to 128 bytes, and a call at most 32 commands") }
        guard table.unwrittenCount < Self.waitingDocuments else { throw .rateLimited(retryAfterMilliseconds: 20) }
        updateLimits()
        defer { countDocuments() }
        var outcomes = try await execute(mutations, from: client, of: principal, caller)
        if !outcomes.isEmpty, holdsResponse(outcomes, of: caller) { return outcomes }
        try await waitUntilWritten(for: caller.connection)
        guard !isClosed else { throw lost }
        addPositions(to: &outcomes, for: caller)
        return outcomes
    }

    func updateLimits() { table.limits = host.limits(of: name) }

    /// Counts the documents in memory. Above a limit, an unused collection is unloaded for the next commit.
    func countDocuments() {
        guard !isClosed else { return }
        memory.update(table.memoryUsage)
        guard let exceeded = memory.exceeded, !isUnloading else { return }
        isUnloading = true
        Task {
            _ = await host.unloadCollection(for: owner, except: name, beyond: exceeded)
            isUnloading = false
        }
    }

    /// The results of the caller's queries are sent before the response to a commit, which contains their positions.
    private func addPositions(to outcomes: inout [MutationOutcome], for caller: CollectionConnectionState) {
        if !outcomes.isEmpty { outcomes[outcomes.count - 1].shown = queries.resultPositions(for: caller) }
    }

    /// Holds the response of the calling commit until its batch is written, without a task that waits.
    ///
    /// - Returns: false when the commit must wait itself.
    private func holdsResponse(_ outcomes: [MutationOutcome], of caller: CollectionConnectionState) -> Bool {
        guard let batch = unfinishedBatch else { return false }
        var result: (() throws -> _CallResult)?
        if !queries.queries(of: caller).isEmpty {
            result = { [unowned self] in
                var outcomes = outcomes
                self.addPositions(to: &outcomes, for: caller)
                return try _CallResult(outcomes)
            }
        }
        guard batch.deferResponse(of: caller.connection, on: shard, result: result) else { return false }
        startWriting()
        return true
    }

    /// Executes mutations, unless the connection is signed in as another account; then it executes none.
    ///
    /// - Parameter account: the id of the account that wrote the mutations; empty for none.
    @Redacted
    distributed func commit(
        _ mutations: [EncodedJSON], from client: String, as account: String
    ) async throws(CollectionError) -> [MutationOutcome] {
        let caller = try host.caller()
        let principal = Caller.current?.principal
        guard (principal?.id ?? "").isSameBytes(as: account) else { throw .otherAccount }
        return try await commit(mutations, from: client, of: principal, caller)
    }

    // MARK: Queries

    /// Opens a query for the calling connection: its result is kept up to date until the connection closes the query or
    /// disconnects.
    ///
    /// The result includes all previous writes of the caller. Later writes reach it over the same connection before their
    /// responses. Opening a query again on the same connection has no effect.
    distributed func open(_ query: EncodedJSON) async throws(CollectionError) -> QueryTicket {
        let caller = try host.caller()
        guard !isClosed else { throw .closed }
        calls += 1
        defer { closeIfUnused() }
        queries.reading += 1
        defer { queries.reading -= 1 }
        let read = try await read(query, for: caller)
        let key = OpenQuery.Key(query: read.query, reader: read.reader)
        // Queries that were opened as another principal, with other roles, or under other rules.
        for other in queries.queries(of: caller) where other.key.query == key.query && other.key != key {
            closeQuery(other, caller)
        }
        let opened = try queries.open(key, for: caller, mayRead: read.mayRead)
        if opened.isFirstOfConnection {
            let handler = caller.connection.onClose { [weak self, weak caller] in
                Task {
                    guard let caller else { return }
                    await self?.whenLocal { $0.connectionDidClose(caller) }
                }
            }
            queries.setCloseHandler(handler, of: caller)
        }
        watchForExpiry()
        if !opened.query.isReady { try await openQuery(opened.query, for: caller) }
        guard opened.query.isReady, !isClosed else { throw .closed }
        return opened.query.ticket(revision: visibleRevision)
    }

    /// Evaluates a query, and lets clients observe its result. Each caller that waits for the query takes part in it, so that no
    /// caller waits for the turns of another one.
    private func openQuery(
        _ query: OpenQuery, for caller: CollectionConnectionState
    ) async throws(CollectionError) {
        var result: Result<CollectionView, CollectionError>?
        var charge: CollectionMemoryLedger.Charge?
        defer { if let charge { host.memory.release([charge]) } }
        // Each part in a separate turn; the result includes concurrent writes.
        await takeTurns(of: caller.connection) {
            guard !query.isRemoved, query.view == nil, query.readers[caller.connection] != nil else { return true }
            guard queries.continueScan(query.list) else {
                guard let error = recount(&charge, of: query.list, for: caller) else { return false }
                result = .failure(error)
                return true
            }
            result = Result { () throws(CollectionError) in try makeView(of: query, for: caller) }
            return true
        }
        switch result {
        case nil: await query.waitUntilFound()
        case .failure(let error):
            // Other readers may have room for it.
            release(query, caller)
            throw error
        case .success(let view):
            await host.expose(view, as: query.name)
            query.enterStage(.ready)
        }
    }

    private func makeView(
        of query: OpenQuery, for caller: CollectionConnectionState
    ) throws(CollectionError) -> CollectionView {
        try queries.computeFirstResult(of: query, for: caller)
        return queries.setFirstResult(query, revision: revision) { result in
            actorSystem.withLoop(of: id) {
                CollectionView(
                    result, named: query.name, of: query.key.reader, in: name, host, actorSystem: actorSystem)
            }
        }
    }

    /// Returns the documents that a query finds now: up to its limit, or as many as a response has room for.
    ///
    /// - Returns: a ``QueryPage``, with a cursor for the next one when there are more.
    distributed func get(_ query: EncodedJSON) async throws(CollectionError) -> EncodedJSON {
        let caller = try host.caller()
        guard !isClosed else { throw .closed }
        calls += 1
        defer { closeIfUnused() }
        queries.reading += 1
        defer { queries.reading -= 1 }
        let read = try await read(query, for: caller)
        var window = try QueryWindow(read.query, maximumBytes: host.limits.pageBytes)
        let list = queries.acquireList(read.listKey, mayRead: read.mayRead)
        defer { releaseList(list) }
        var encoder: PageEncoder?
        var (scanCharge, charge): (CollectionMemoryLedger.Charge?, CollectionMemoryLedger.Charge?)
        defer { host.memory.release([scanCharge, charge].compactMap { $0 }) }
        var failure: CollectionError?
        await takeTurns(of: caller.connection) {
            let slice = ScanSlice()
            if encoder == nil {
                guard queries.continueScan(list) else {
                    failure = recount(&scanCharge, of: list, for: caller)
                    return failure != nil
                }
                let documents = window.computeFirstWindow(in: list.rows)
                let cursor =
                    window.hasMore ? documents.last.map { QueryCursor(behind: $0, in: read.query.order).text } : nil
                encoder = PageEncoder(
                    QueryPage(documents: documents, cursor: cursor, count: window.matches, revision: revision))
            }
            guard encoder?.resume(until: slice) == false else { return true }
            if charge == nil, let bytes = encoder?.byteCount { charge = makeCharge(of: bytes, for: caller) }
            // Without room for the text of a page that waits, the rest is encoded at once.
            return charge == nil && encoder?.resume(until: .unlimited) == true
        }
        // The lists of a collection that has ended meanwhile are empty.
        try checkOpen()
        if let failure { throw failure }
        guard let text = encoder?.encoded() else { throw .closed }
        return text
    }

    /// Smaller changes of the memory of a scan are not counted.
    private static let scanPrecision = 16 << 10

    /// Counts the memory of a scan that continues later for its caller; returns the limit that it exceeds.
    private func recount(
        _ charge: inout CollectionMemoryLedger.Charge?, of list: MatchList, for caller: CollectionConnectionState
    ) -> CollectionError? {
        let bytes = list.byteCount
        guard abs(bytes - (charge?.bytes ?? 0)) >= Self.scanPrecision else { return nil }
        let new = CollectionMemoryLedger.Charge(bytes: bytes, holder: caller.holder, client: caller)
        do throws(CollectionError) { try host.memory.replace(charge.map { [$0] } ?? [], with: new) } catch {
            return error
        }
        charge = new
        return nil
    }

    /// Counts the text of a page for its caller; returns nil when there is no room.
    private func makeCharge(
        of bytes: Int, for caller: CollectionConnectionState
    ) -> CollectionMemoryLedger.Charge? {
        let charge = CollectionMemoryLedger.Charge(bytes: bytes, holder: caller.holder, client: caller)
        do throws(CollectionError) { try host.memory.replace([], with: charge) } catch { return nil }
        return charge
    }

    /// Releases a list, which stays available for the next page.
    private func releaseList(_ list: MatchList) {
        guard let left = queries.release(list) else { return }
        let number = list.number
        after(host.limits.idleQueryTime) { $0.queries.removeIfUnused(number, since: left) }
    }

    /// Closes a query that the calling connection has opened.
    distributed func close(_ query: EncodedJSON) async throws(CollectionError) {
        let caller = try host.caller()
        try host.consumeRead(of: caller)
        queries.reading += 1
        defer {
            queries.reading -= 1
            closeIfUnused()
        }
        var failure: CollectionError?
        func close() -> Bool {
            do throws(CollectionError) {
                let query = try CollectionQuery(sent: query).canonical
                if let open = queries.queries(of: caller).first(where: { $0.key.query == query }) {
                    release(open, caller)
                }
            } catch {
                failure = error
            }
            return true
        }
        // A query is closed in each case: its client does not repeat the call.
        if turns.admitsRead(of: caller.connection) {
            await takeTurns(of: caller.connection, close)
        } else {
            _ = close()
        }
        if let failure { throw failure }
    }

    /// A decoded query of a caller.
    private struct CallerQuery {
        /// In its canonical form.
        let query: CollectionQuery
        let reader: CollectionReader?
        let mayRead: @Sendable (Document) -> Bool

        var listKey: MatchList.Key { MatchList.Key(query, for: reader) }
    }

    /// Decodes a query of a caller, and builds the index for its list, in turns of the caller. A call that waits for its turn has
    /// only the text of its query.
    private func read(
        _ query: EncodedJSON, for caller: CollectionConnectionState
    ) async throws(CollectionError) -> CallerQuery {
        try host.consumeRead(of: caller)
        guard turns.admitsRead(of: caller.connection) else { throw .rateLimited(retryAfterMilliseconds: 100) }
        var result: Result<CallerQuery, CollectionError>?
        await takeTurns(of: caller.connection) {
            let read = result ?? decode(query, for: caller)
            if result == nil { expire() }
            result = read
            guard case .success(let read) = read else { return true }
            return queries.prepare(read.listKey, for: caller, mayRead: read.mayRead)
        }
        guard !isClosed, let result else { throw .closed }
        return try result.get()
    }

    private func decode(
        _ query: EncodedJSON, for caller: CollectionConnectionState
    ) -> Result<CallerQuery, CollectionError> {
        Result { () throws(CollectionError) in
            let query = try CollectionQuery(sent: query).canonical
            // A query shows what the present principal may read, as its updates do.
            let (name, principal) = (name, caller.connection.principal)
            let (reader, rules) = host.reading(principal, in: name)
            guard let reader else { return CallerQuery(query: query, reader: nil, mayRead: { _ in true }) }
            return CallerQuery(query: query, reader: reader) { rules.isAllowed(principal, .read, $0, in: name) }
        }
    }

    /// Ends queries that the connection may not read any more, not with this reader identity, or not in the quota of its principal;
    /// its client opens them again.
    func authorizationDidChange(of caller: CollectionConnectionState) {
        let (reader, _) = host.reading(caller.connection.principal, in: name)
        for query in queries.queries(of: caller)
        where caller.connection.isRevoked || query.key.reader != reader || !queries.updateHolder(of: query, to: caller)
        {
            closeQuery(query, caller)
        }
        closeIfUnused()
    }

    func rulesChanged() {
        updateLimits()
        for caller in queries.callers { authorizationDidChange(of: caller) }
    }

    private func closeQuery(_ query: OpenQuery, _ caller: CollectionConnectionState) {
        caller.connection.endStreams(ofActor: query.name, CollectionView.unauthorizedError)
        release(query, caller)
    }

    private func connectionDidClose(_ caller: CollectionConnectionState) {
        for query in queries.queries(of: caller) { release(query, caller) }
        closeIfUnused()
    }

    private func release(_ query: OpenQuery, _ caller: CollectionConnectionState) {
        guard let emptied = queries.close(query, for: caller) else { return }
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
}

/// Operations of administrators on a collection, and reads for other collections.
extension DocumentCollection {
    /// Changes documents without the rules. Returns when the changes are in the store and readers have them.
    func change<Outcome: Sendable>(
        _ body: @Sendable (inout DocumentTable, _ now: Int) -> Outcome
    ) async throws(CollectionError) -> Outcome {
        guard !isClosed else { throw .closed }
        calls += 1
        defer { closeIfUnused() }
        if table.isBatchFull { try await waitUntilWritten(for: nil) }
        try checkOpen()
        updateLimits()
        let outcome = body(&table, host.clock.now())
        applyExpired()
        countDocuments()
        watchForExpiry()
        try await waitUntilWritten(for: nil)
        return outcome
    }

    /// Returns those of the documents that are in the store.
    func documents(_ ids: [DocumentID]) throws(CollectionError) -> [DocumentID: Document] {
        guard !isClosed else { throw .closed }
        calls += 1
        defer { closeIfUnused() }
        var found: [DocumentID: Document] = [:]
        for id in ids { found[id] = table.documents[id] }
        return found
    }

    /// Returns all documents of the store at one moment, including expired ones. They are not filtered here, because that is
    /// too much for a reactor.
    func contents() throws(CollectionError) -> DocumentMap {
        guard !isClosed else { throw .closed }
        calls += 1
        defer { closeIfUnused() }
        return table.documents
    }
}

/// The end of an unused collection.
extension DocumentCollection {
    var isUnused: Bool {
        !isClosed && !isWriting && copying == nil && commitsOfConnections.isEmpty && next.isEmpty
            && !table.hasUnwritten && queries.isEmpty
    }

    /// Deactivates the collection without readers and commands: at once when it has no documents, else after a time.
    func closeIfUnused() {
        // Deletes documents that had expired before the collection was loaded.
        startWriting()
        guard isUnused else { return }
        guard table.isEmpty else { return becomeIdle() }
        close()
    }

    private func close() {
        guard !isDeactivating else { return }
        isDeactivating = true
        Task { await host.deactivateCollection(self, name) }
    }

    /// Reports whether the collection was deactivated or a caller has started to use it again.
    func deactivationDidFinish(_ isDeactivated: Bool) {
        isDeactivating = false
        // Otherwise a call in progress checks for the deactivation at its end.
        if isDeactivated { endAll() }
    }

    /// Throws when the collection has ended while its caller was suspended. Its table is empty then.
    func checkOpen() throws(CollectionError) {
        guard !isClosed else { throw .closed }
    }

    var lost: CollectionError {
        .unknownOutcome("collection '\(name)' moved to another node during the write")
    }

    /// Ends the collection. A commit whose batch the store has not acknowledged fails.
    func endAll() {
        isClosed = true
        timer?.cancel()
        current?.fail(lost)
        next.fail(.closed)
        // Freed outside the reactor, because that takes long for many documents.
        memory.release()
        let (table, lists) = (table, queries.removeAll())
        self.table = DocumentTable(limits: host.limits)
        Task.detached { withExtendedLifetime((table, lists)) {} }
    }

    /// Deactivates the collection when the call that has activated it was not executed.
    func closeIfUncalled() { if calls == 0 { closeIfUnused() } }

    func becomeIdle() {
        host.markIdle(name, of: owner)
        guard !isIdleTimerRunning else { return }
        isIdleTimerRunning = true
        let (time, before, clock) = (host.limits.idleTime, calls, host.clock)
        Task { [weak self] in
            try? await clock.sleep(time)
            await self?.whenLocal { collection in
                collection.isIdleTimerRunning = false
                guard collection.isUnused else { return }
                if collection.calls == before { collection.close() } else { collection.becomeIdle() }
            }
        }
    }
}

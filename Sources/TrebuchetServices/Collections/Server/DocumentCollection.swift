internal import Trebuchet

/// `collections/<name>`: the documents of a collection, and the commands that change them.
///
/// Commands are done one after the other, as they come. What they change is written to the store together with what else came
/// meanwhile, shown to readers, and only then answered.
@Trebuchet
distributed actor DocumentCollection {
    private typealias Waiter = CheckedContinuation<Result<Void, CollectionError>, Never>

    private struct Waiting {
        let continuation: Waiter
        /// Whose query results are to show the write.
        let connection: CallerConnection
    }

    private let name: String
    private let stored: StoredCollection
    private let host: CollectionHost
    private var table: DocumentTable
    private var queries: OpenQueries
    /// Of the last write that is in the store.
    private var revision: Int
    private var waiting: [Waiting] = []
    private var isWriting = false
    private var isClosed = false
    /// Calls so far, to see whether there were any in a time.
    private var calls = 0
    private var restsAlready = false

    init(
        name: String, _ table: DocumentTable, _ stored: StoredCollection, host: CollectionHost,
        actorSystem: TrebuchetActorSystem
    ) {
        self.name = name
        self.table = table
        self.stored = stored
        self.host = host
        queries = OpenQueries(host: host)
        revision = table.revision
        self.actorSystem = actorSystem
    }

    // MARK: Commands

    /// Does commands in their order, each once however often it comes, and answers when their changes are in the store.
    ///
    /// - Parameter client: a secret of the client's making, 16 to 128 bytes; its commands are numbered upwards from 1.
    /// - Returns: what became of them. Of the first ones alone, when the connection may not make as many writes now.
    distributed func commit(
        _ mutations: [DocumentMutation], from client: String
    ) async throws(CollectionError) -> [MutationOutcome] {
        let visitor = try host.visitor()
        guard !isClosed else { throw .closed }
        calls += 1
        defer { closeIfUnused() }
        guard (16...CollectionLimits.longestName).contains(client.utf8.count),
            mutations.count <= CollectionLimits.mutationsPerCall
        else { throw .invalidDocument("a client's name has 16 to 128 bytes, and a call 32 commands at most") }
        let principal = visitor.connection.principal
        let now = host.clock()
        var outcomes: [MutationOutcome] = []
        for mutation in mutations {
            if let wait = visitor.takeWrite() {
                guard !outcomes.isEmpty else { throw .rateLimited(retryAfterMilliseconds: wait) }
                break
            }
            let (rules, name) = (host.rules, name)
            outcomes.append(
                table.apply(mutation, from: client, creator: principal?.id, at: now) { action, document in
                    rules.may(principal, action, document, in: name)
                })
        }
        try await written(for: visitor.connection)
        return outcomes
    }

    /// The same, unless the connection is signed in as somebody else: then nothing is done.
    ///
    /// - Parameter account: the id of the principal whose commands these are; empty for somebody who is not signed in.
    distributed func commit(
        _ mutations: [DocumentMutation], from client: String, as account: String
    ) async throws(CollectionError) -> [MutationOutcome] {
        guard try host.visitor().connection.principal?.id ?? "" == account else { throw .otherAccount }
        return try await commit(mutations, from: client)
    }

    /// Returns when all that was done up to now is in the store and with the readers.
    private func written(for connection: CallerConnection) async throws(CollectionError) {
        // Nothing was changed, but its client waits to see that number.
        guard table.hasUnwritten || isWriting else { return queries.show([], revision: revision, for: [connection]) }
        let result = await withCheckedContinuation { continuation in
            waiting.append(Waiting(continuation: continuation, connection: connection))
            guard !isWriting else { return }
            isWriting = true
            Task { await writeAll() }
        }
        try result.get()
    }

    private func writeAll() async {
        while let batch = table.beginWrite() {
            let written = waiting
            waiting = []
            var result: Result<Void, CollectionError> = .success(())
            do throws(CollectionError) {
                try await stored.write(batch)
                revision = batch.revision
                queries.show(
                    table.endWrite(batch), revision: revision, for: Set(written.map(\.connection)))
            } catch {
                // Those that came meanwhile have built on what is not kept.
                table.discardUnwritten()
                result = .failure(error)
            }
            for waiter in written { waiter.continuation.resume(returning: result) }
            guard case .failure = result else { continue }
            let later = waiting
            waiting = []
            for waiter in later { waiter.continuation.resume(returning: result) }
        }
        isWriting = false
        // They repeat what was in the last batch.
        let rest = waiting
        waiting = []
        queries.show([], revision: revision, for: Set(rest.map(\.connection)))
        for waiter in rest { waiter.continuation.resume(returning: .success(())) }
        closeIfUnused()
    }

    // MARK: Queries

    /// Begins to keep the result of a query up to date for the calling connection, until that closes it or goes.
    ///
    /// What it has written up to now, and writes from then on, is shown there before it is answered. A connection that opens
    /// a query again has opened it once.
    distributed func open(_ query: CollectionQuery) async throws(CollectionError) -> QueryTicket {
        let visitor = try host.visitor()
        guard !isClosed else { throw .closed }
        calls += 1
        defer { closeIfUnused() }
        try query.check()
        let principal = visitor.connection.principal
        let (rules, name) = (host.rules, name)
        let reader = rules.readersAreAlike(in: name) ? nil : OpenQueries.Reader(id: principal?.id)
        let key = OpenQueries.Key(query: query.canonical, reader: reader)
        let opened = try queries.open(key, for: visitor, revision: revision) {
            let documents = table.documents.values
            let view =
                reader == nil
                ? QueryView(key.query, of: documents)
                : QueryView(key.query, of: documents) { rules.may(principal, .read, $0, in: name) }
            return CollectionView(view, revision: revision, actorSystem: actorSystem)
        }
        if opened.isFirstOfConnection {
            visitor.connection.onClose { [weak self, weak visitor] in
                Task {
                    guard let visitor else { return }
                    await self?.whenLocal { $0.left(visitor) }
                }
            }
        }
        if opened.isNew { await host.expose(opened.view, as: opened.ticket.view) }
        return opened.ticket
    }

    /// Ends what `open` began, for the calling connection.
    distributed func close(_ query: CollectionQuery) throws(CollectionError) {
        let visitor = try host.visitor()
        let key = queries.keys(of: visitor).first { $0.query == query.canonical }
        if let key { release(key, visitor) }
        closeIfUnused()
    }

    private func left(_ visitor: CollectionVisitor) {
        for key in queries.keys(of: visitor) { release(key, visitor) }
        closeIfUnused()
    }

    private func release(_ key: OpenQueries.Key, _ visitor: CollectionVisitor) {
        guard let emptied = queries.close(key, for: visitor) else { return }
        let time = host.limits.idleQueryTime
        guard time > .zero else { return queries.removeIfUnread(key, since: emptied) }
        Task { [weak self] in
            try? await Task.sleep(for: time)
            await self?.whenLocal { collection in
                collection.queries.removeIfUnread(key, since: emptied)
                collection.closeIfUnused()
            }
        }
    }

    private var isUnused: Bool {
        !isClosed && !isWriting && waiting.isEmpty && !table.hasUnwritten && queries.isEmpty
    }

    /// A collection without readers and commands under way goes: at once when it has no documents, else after a time.
    private func closeIfUnused() {
        guard isUnused else { return }
        guard table.isEmpty else { return rest() }
        close()
    }

    private func close() {
        isClosed = true
        host.didClose(name)
    }

    private func rest() {
        guard !restsAlready else { return }
        restsAlready = true
        let (time, before) = (host.limits.idleTime, calls)
        Task { [weak self] in
            try? await Task.sleep(for: time)
            await self?.whenLocal { collection in
                collection.restsAlready = false
                guard collection.isUnused else { return }
                if collection.calls == before { collection.close() } else { collection.rest() }
            }
        }
    }
}

internal import Platform
internal import Transports
internal import Trebuchet

/// Execution of commits, expiry of documents, and writes to the store.
extension DocumentCollection {
    /// The time in milliseconds after which a client repeats a mutation that was not executed because it is large.
    private static let evaluationDelay = 100

    /// Executes mutations after those of the connection's earlier commits; their changes are part of the next batch.
    func execute(
        _ mutations: [EncodedJSON], from client: String, of principal: Principal?, _ caller: CollectionConnectionState
    ) async throws(CollectionError) -> [MutationOutcome] {
        var commit = CommitProgress(caller.connection, count: mutations.count)
        defer { end(&commit) }
        try await begin(&commit)
        let read = try await decode(mutations, of: caller, &commit)
        let client = ByteText(client)
        let admitted = try admit(read, from: client, caller)
        let targets = linkTargets(of: admitted, from: client)
        var linked = LinkedDocuments()
        if !targets.isEmpty {
            let host = host
            // Their collections may have to be loaded.
            try await suspend(&commit) { () async throws(CollectionError) in
                linked.found = try await host.documents(targets)
            }
        }
        defer {
            applyExpired()
            watchForExpiry()
        }
        func evaluation(of mutation: DocumentMutation) -> MutationEvaluation {
            MutationEvaluation(
                mutation, from: client, creator: principal?.id, origin: table.origin(of: caller.host))
        }
        var outcomes: [MutationOutcome] = []
        /// The number of failed batches before the first mutation was executed.
        var failures: Int?
        for mutation in admitted {
            if !outcomes.isEmpty, commit.slice.isOver { try await pause(&commit, failures: failures) }
            switch mutation {
            case .refused(let number, let error):
                outcomes.append(MutationOutcome(number: number, revision: table.revision, error: error))
            case .exceeding(let mutation, let error): outcomes.append(table.refuse(evaluation(of: mutation), error))
            case .mutation(let mutation):
                let outcome = try await evaluate(
                    evaluation(of: mutation), of: principal, caller, &linked, &commit, failures: failures)
                guard let outcome else {
                    // The client repeats it.
                    guard !outcomes.isEmpty else { throw .rateLimited(retryAfterMilliseconds: Self.evaluationDelay) }
                    return outcomes
                }
                outcomes.append(outcome)
            }
            failures = failures ?? self.failures
            if let error = outcomes.last?.error {
                host.log.refusal(error, of: "a write", in: name, by: caller.connection)
            }
        }
        return outcomes
    }

    /// The number of starts of a mutation after which the writes of others to its documents wait for it.
    private static let startsBeforeReservation = 4

    /// Executes a mutation. Other commits are executed while it is suspended. When they have made it start again several times, they
    /// wait, if they change documents that it has read.
    ///
    /// - Returns: nil when it was not executed, because its documents change again and again all the same (as by expiry), or because
    ///   suspended mutations of the caller use too much memory.
    private func evaluate(
        _ evaluation: MutationEvaluation, of principal: Principal?, _ caller: CollectionConnectionState,
        _ linked: inout LinkedDocuments, _ commit: inout CommitProgress, failures: Int?
    ) async throws(CollectionError) -> MutationOutcome? {
        let (host, name) = (host, name)
        var evaluation = evaluation
        var hasReservation = false
        defer { if hasReservation { endReservation() } }
        while true {
            repeat {
                while table.isBatchFull { try await pause(&commit, failures: failures) }
                if !hasReservation, let other = reservation,
                    evaluation.starts >= Self.startsBeforeReservation || other.concerns(evaluation.mutation)
                {
                    try await suspend(&commit) { await other.wait(on: turns.tasks) }
                    continue
                }
                if !linked.found.isEmpty { try await update(&linked, of: principal, commit) }
                // Each wait may have changed what the others have ensured.
            } while table.isBatchFull || !hasReservation && isReserved(for: evaluation.mutation)
                || !linked.found.isEmpty && linked.suspensions != commit.suspensions
            if !hasReservation, evaluation.starts >= Self.startsBeforeReservation, reservation == nil,
                evaluation.mutation.writes.count > 1
            {
                reservation = DocumentReservation()
                hasReservation = true
            }
            let rules = host.rules
            let readable = linked.readable
            let part = table.resume(
                &evaluation, &commit.slice, at: host.clock.now(), isThere: { readable.contains($0) },
                check: { change throws(CollectionError) in try rules.validate(principal, change, in: name) }
            ) { action, document in host.may(principal, action, document, in: name) }
            if hasReservation { reservation?.documents = Set(evaluation.readDocuments) }
            switch part {
            case .complete(let outcome): return outcome
            case .contended:
                host.log.contention(in: name, by: caller.connection)
                return nil
            case .incomplete:
                if let error = try await count(evaluation, for: caller, in: &commit) {
                    host.log.refusal(error, of: "a large transaction", in: name, by: caller.connection)
                    let (client, number) = (evaluation.client, evaluation.mutation.number)
                    guard memory.hasWaited(client, number, through: number, at: host.clock.now()) else { return nil }
                    return table.refuse(evaluation, error)
                }
                try await pause(&commit, failures: failures)
            }
        }
    }

    private func isReserved(for mutation: DocumentMutation) -> Bool { reservation?.concerns(mutation) == true }

    func endReservation() {
        let ended = reservation
        reservation = nil
        ended?.end()
    }

    /// Counts the memory of a suspended evaluation; returns the limit that it exceeds. Unused collections are unloaded to make room.
    private func count(
        _ evaluation: MutationEvaluation, for caller: CollectionConnectionState, in commit: inout CommitProgress
    ) async throws(CollectionError) -> CollectionError? {
        let charge = CollectionMemoryLedger.Charge(
            bytes: evaluation.memoryBytes, holder: caller.holder, client: caller)
        while true {
            do throws(CollectionError) {
                try host.memory.replace(commit.charge.map { [$0] } ?? [], with: charge)
                commit.charge = charge
                return nil
            } catch {
                guard case .serverTooLarge = error else { return error }
                let (host, owner, name) = (host, owner, name)
                var isUnloaded = false
                try await suspend(&commit) {
                    isUnloaded = await host.unloadCollection(for: owner, except: name, beyond: error)
                }
                guard isUnloaded else { return error }
            }
        }
    }

    /// The documents of other collections to which the mutations of a commit link.
    private struct LinkedDocuments {
        var found: [LinkTarget: Document] = [:]
        /// The documents that exist and that the caller may read.
        var readable: Set<LinkTarget> = []
        /// The number of the commit's suspensions before they were read.
        var suspensions: Int?
    }

    /// Reads linked documents again after a suspension: they may have changed.
    private func update(
        _ linked: inout LinkedDocuments, of principal: Principal?, _ commit: CommitProgress
    ) async throws(CollectionError) {
        guard linked.suspensions != commit.suspensions else { return }
        linked.found = try await host.currentDocuments(linked.found)
        try checkOpen()
        linked.suspensions = commit.suspensions
        let now = host.clock.now()
        let readable = linked.found.filter { target, document in
            !document.isExpired(at: now) && host.may(principal, .read, document, in: target.collection)
        }
        linked.readable = Set(readable.keys)
    }

    /// Returns the first mutations that may be executed now: all, or while the memory is used up, those that are repeated or only
    /// delete documents. A mutation that has waited too long for memory fails.
    private func admit(
        _ mutations: [DecodedMutation], from client: ByteText, _ caller: CollectionConnectionState
    ) throws(CollectionError) -> [DecodedMutation] {
        guard let exceeded = memory.exceeded, !memory.admitsGrowth(by: caller.holder.host) else { return mutations }
        let last = mutations.last?.number ?? 0
        var admitted: [DecodedMutation] = []
        for decoded in mutations {
            guard decoded.mayGrow, case .mutation(let mutation) = decoded,
                table.recordedOutcome(of: mutation, by: client) == nil
            else {
                admitted.append(decoded)
                continue
            }
            host.log.refusal(exceeded, of: "a write", in: name, by: caller.connection)
            guard memory.hasWaited(client, mutation.number, through: last, at: host.clock.now()) else {
                // The client repeats the call: its writes are not lost.
                guard !admitted.isEmpty else { throw .rateLimited(retryAfterMilliseconds: 1_000) }
                return admitted
            }
            admitted.append(.exceeding(mutation, exceeded))
        }
        return admitted
    }

    /// The documents of other collections to which new mutations link.
    private func linkTargets(of mutations: [DecodedMutation], from client: ByteText) -> Set<LinkTarget> {
        var targets: Set<LinkTarget> = []
        for case .mutation(let mutation) in mutations {
            for write in mutation.writes {
                guard let target = write.command.target, target.collection != name else { continue }
                if table.recordedOutcome(of: mutation, by: client) != nil { break }
                targets.insert(target)
            }
        }
        return targets
    }

    /// Suspends a commit between two writes, and until the batch has room. Other work gets its turn.
    ///
    /// - Parameter failures: the number of failed batches before the first mutation of the commit; nil when none was executed.
    private func pause(_ commit: inout CommitProgress, failures: Int?) async throws(CollectionError) {
        let connection = commit.connection
        try await suspend(&commit) { () async throws(CollectionError) in
            if table.isBatchFull { try await waitUntilWritten(for: connection) }
        }
        guard failures == nil || failures == self.failures else {
            throw .storeFailed("the preceding write could not be stored")
        }
    }

    /// Decodes mutations, a part in each time slice. Later commits of the connection wait for it.
    private func decode(
        _ mutations: [EncodedJSON], of caller: CollectionConnectionState, _ commit: inout CommitProgress
    ) async throws(CollectionError) -> [DecodedMutation] {
        var decoder = MutationDecoder(mutations, table.limits)
        while true {
            let isDone: Bool
            do throws(CollectionError) {
                isDone = try decoder.resume(commit.slice) { writes in
                    host.consumeWrites(writes, of: caller, to: name, table.limits.writesPerConnectionAndCollection)
                }
            } catch {
                host.log.refusal(error, of: "writes", in: name, by: caller.connection)
                throw error
            }
            if isDone { return decoder.decoded }
            try await suspend(&commit)
        }
    }

    /// The size of a batch in bytes above which it is encoded outside the reactor.
    private static let maximumEncodedBytes = 256 << 10

    /// Removes expired documents: some now, the others in later time slices.
    func expire() {
        if expirePart() { expireLater() } else { watchForExpiry() }
    }

    /// Removes at most `expiredAtOnce` expired documents, and returns true when there are more.
    func expirePart() -> Bool {
        let isMore = table.expire(at: host.clock.now(), limit: Self.expiredAtOnce)
        applyExpired()
        countDocuments()
        startWriting()
        return isMore
    }

    /// Removes expired documents from results, independent of the store.
    func applyExpired() {
        queries.recordChanges(table.takeExpired(), revision: revision)
        beginUpdate(for: [nil])
    }

    /// Schedules one timer, for the document that expires first.
    func watchForExpiry() {
        guard let next = table.nextExpiry else { return }
        guard alarm.map({ next < $0 }) ?? true else { return }
        alarm = next
        timer?.cancel()
        let clock = host.clock
        timer = Task { [weak self] in
            do { try await clock.sleep(until: next) } catch { return }
            await self?.whenLocal { collection in
                guard collection.alarm == next else { return }
                collection.alarm = nil
                let mayExpire = collection.turns.mayBegin(FairTurns.Work(nil))
                if mayExpire { collection.expire() } else { collection.expireLater() }
            }
        }
    }

    /// The batch that completes all changes up to now; nil when readers have them. A repeated mutation of the current batch
    /// changes nothing, and waits for that batch.
    var unfinishedBatch: PendingBatch? { table.hasUnwritten ? next : current }

    /// Returns when all changes up to now are in the store and readers have them.
    func waitUntilWritten(for connection: CallerConnection?) async throws(CollectionError) {
        try checkOpen()
        guard let batch = unfinishedBatch else { return }
        startWriting()
        try await batch.wait(for: connection, on: turns.tasks)
    }

    func startWriting() {
        guard !isWriting, !isClosed, table.hasUnwritten else { return }
        isWriting = true
        // With the reactor as the executor, so that a store that passes the work on uses no other thread.
        Task(executorPreference: id.home?.taskExecutor) { await self.whenLocal { await $0.writeAll() } }
    }

    func writeAll() async {
        var last: StoredCollection.Acknowledgement?
        while !isClosed {
            guard let batch = table.beginWrite() else {
                // Commits whose changes were already part of the last batch: repeats, and commits that have yielded.
                if let last { next.succeed(last) }
                break
            }
            let pending = next
            (current, next) = (pending, PendingBatch())
            do throws(CollectionError) {
                let acknowledgement = try await write(batch)
                // All waiting commits were answered when the collection ended.
                guard !isClosed else { break }
                revision = batch.revision
                queries.recordChanges(table.endWrite(batch), revision: revision)
                copyIfSnapshotDue()
                await updateResults(for: pending.connections)
                visibleRevision = revision
                pending.succeed(acknowledgement)
                last = acknowledgement
            } catch {
                didFail(batch, pending, error)
            }
            current = nil
        }
        isWriting = false
        guard !isClosed else { return }
        watchForExpiry()
        closeIfUnused()
    }

    private func didFail(_ batch: DocumentTable.Batch, _ pending: PendingBatch, _ error: CollectionError) {
        let connections = pending.connections
        let writers = connections.first.map { " by \($0.map(CollectionLog.name) ?? "an administrator")" } ?? ""
        let others = Set(connections).count - 1
        host.log.failure(
            "collection '\(name)': a write of \(batch.documents.count.counted("document"))\(writers)"
                + "\(others > 0 ? " and \(others.counted("other"))" : "") failed: \(error)")
        guard !isClosed else { return }
        if stored.hasEnded { host.giveUp(self, name, views: queries.views) }
        // Later commits have read the discarded changes, or repeat mutations of the batch.
        table.discardUnwritten()
        failures += 1
        let later = next
        next = PendingBatch()
        for waiting in [pending, later] { waiting.fail(error) }
    }

    private func write(
        _ batch: DocumentTable.Batch
    ) async throws(CollectionError) -> StoredCollection.Acknowledgement {
        if stored.isBegun, batch.byteCount <= Self.maximumEncodedBytes {
            return try await stored.write(batch, over: nil)
        }
        // A snapshot in progress belongs to the log before the batch.
        if !stored.isBegun { await copying?.value }
        try checkOpen()
        let (stored, contents) = (stored, stored.isBegun ? nil : table.contents(at: revision))
        return try await withTaskExecutorPreference(globalConcurrentExecutor) { () async throws(CollectionError) in
            try await stored.write(batch, over: contents)
        }
    }

    /// Writes a snapshot when the log has become too long: slice by slice, concurrent with other writes.
    private func copyIfSnapshotDue() {
        let bytes = table.shares.all.bytes
        guard copying == nil,
            let snapshot = stored.snapshotIfDue(by: bytes, { table.contents(at: revision) }),
            host.beginCopying()
        else { return }
        let (name, stored, host) = (name, stored, host)
        copying = Task.detached(priority: .utility) { [weak self] in
            do {
                try await stored.write(snapshot) { !stored.hasEnded && host.server?.status == .serving }
            } catch {
                if !(error is CancellationError) {
                    host.log.failure("collection '\(name)': writing a snapshot failed: \(error)")
                }
            }
            host.endCopying()
            await self?.whenLocal { collection in
                collection.copying = nil
                collection.closeIfUnused()
            }
        }
    }
}

extension DocumentCollection: ClusteredServiceActor {
    /// Ends the collection because another node owns it. Commits outside a batch are not executed; the outcome of a batch in
    /// progress is unknown. Further calls have no effect.
    func didMove() {
        guard !hasMoved else { return }
        hasMoved = true
        stored.close()
        queries.closeAll()
        endAll()
        host.releaseName(of: self, name)
    }
}

/// The documents of a transaction for which other writes wait.
///
/// It is used in its collection's isolation only.
final class DocumentReservation {
    /// Those that the transaction has read and may thus change; no others, because the caller may not be allowed to.
    var documents: Set<DocumentID> = []
    private(set) var waiters: [SuspendedTask] = []

    /// Returns whether a mutation writes one of the documents.
    func concerns(_ mutation: DocumentMutation) -> Bool {
        mutation.writes.contains { documents.contains($0.command.id) }
    }

    /// Returns when the transaction has ended.
    func wait(on tasks: TaskSuspender, isolation: isolated (any Actor)? = #isolation) async {
        await tasks.suspend { self.waiters.append($0) }
    }

    func end() {
        for waiter in waiters { waiter.resume() }
        waiters = []
    }
}

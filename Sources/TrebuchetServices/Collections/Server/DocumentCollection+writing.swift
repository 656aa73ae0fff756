internal import Trebuchet

/// What has expired goes, and what was done goes to the store.
extension DocumentCollection {
    /// Takes away what has expired, a part in each turn.
    func expire() {
        let isMore = table.expire(at: host.clock.now(), limit: Self.expiredAtOnce)
        showExpired()
        startWriting()
        guard isMore else { return watchForExpiry() }
        Task { [weak self] in
            await Task.yield()
            await self?.whenLocal { $0.expire() }
        }
    }

    /// Readers see it no more, whatever becomes of the store.
    func showExpired() {
        queries.note(table.takeExpired(), revision: revision)
        guard !queries.goOnShowing() else { return }
        Task { await showAll() }
    }

    /// Returns when all that is in the store, or has expired, is shown: in turns, when it is much.
    func showAll() async {
        while !queries.goOnShowing() { await Task.yield() }
        closeIfUnused()
    }

    /// One timer, for the document that expires first.
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
                collection.expire()
            }
        }
    }

    /// Returns when all that was done up to now is in the store and with the readers.
    func written(for connection: CallerConnection?) async throws(CollectionError) {
        try checkOpen()
        // A repeated mutation of the batch under way changes nothing, and waits for that batch.
        guard let batch = table.hasUnwritten ? next : current else { return }
        let result = await withCheckedContinuation { continuation in
            batch.add(continuation, of: connection)
            startWriting()
        }
        try result.get()
    }

    func startWriting() {
        guard !isWriting, !isClosed, table.hasUnwritten else { return }
        isWriting = true
        Task { await writeAll() }
    }

    func writeAll() async {
        while !isClosed, let batch = table.beginWrite() {
            let pending = next
            (current, next) = (pending, PendingBatch())
            do throws(CollectionError) {
                let acknowledgement = try await write(batch)
                // The end of the collection has answered all waiting commits.
                guard !isClosed else { break }
                revision = batch.revision
                queries.note(table.endWrite(batch), revision: revision)
                copyIfOutweighed()
                while !queries.goOnShowing() { await Task.yield() }
                shownRevision = revision
                pending.succeed(acknowledgement)
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
            "collection '\(name)': a write of \(batch.documents.count) documents\(writers)"
                + "\(others > 0 ? " and \(others) others" : "") failed: \(error)")
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
        guard !stored.isBegun else { return try await stored.write(batch, over: nil) }
        // What it writes is of the log before.
        await copying?.value
        try checkOpen()
        return try await stored.write(batch, over: table.contents(at: revision))
    }

    /// Writes the collection anew, slice by slice and beside what else is written, when its log has become too long.
    private func copyIfOutweighed() {
        let bytes = table.shares.all.bytes
        guard copying == nil,
            let snapshot = stored.snapshotIfOutweighed(by: bytes, { table.contents(at: revision) }),
            host.beginCopying()
        else { return }
        let (name, stored, host) = (name, stored, host)
        copying = Task.detached(priority: .utility) { [weak self] in
            do {
                try await stored.write(snapshot) { !stored.hasEnded && host.server?.status == .serving }
            } catch {
                if !(error is CancellationError) {
                    host.log.failure("collection '\(name)': a snapshot was not written: \(error)")
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

extension DocumentCollection: PlacedPart {
    /// Ends the collection, as another node owns it. Commits outside a batch are not done; the outcome of a batch under way is unknown.
    func didMove() {
        stored.end()
        queries.closeAll()
        takeApart()
        host.giveBack(name)
    }
}

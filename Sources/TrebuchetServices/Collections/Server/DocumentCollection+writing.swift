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
        guard table.hasUnwritten || isWriting else { return }
        let result = await withCheckedContinuation { continuation in
            waiting.append(Waiting(continuation: continuation, connection: connection))
            startWriting()
        }
        try result.get()
    }

    func startWriting() {
        guard !isWriting, table.hasUnwritten || !waiting.isEmpty else { return }
        isWriting = true
        Task { await writeAll() }
    }

    func writeAll() async {
        while let batch = table.beginWrite() {
            let written = waiting
            waiting = []
            var result: Result<Void, CollectionError> = .success(())
            do throws(CollectionError) {
                try await write(batch)
                revision = batch.revision
                queries.note(table.endWrite(batch), revision: revision)
                copyIfOutweighed()
                while !queries.goOnShowing() { await Task.yield() }
                shownRevision = revision
            } catch {
                let writers =
                    written.first.map { " by \($0.connection.map(CollectionLog.name) ?? "an administrator")" } ?? ""
                let others = Set(written.map(\.connection)).count - 1
                host.log.failure(
                    "collection '\(name)': a write of \(batch.documents.count) documents\(writers)"
                        + "\(others > 0 ? " and \(others) others" : "") failed: \(error)")
                if stored.hasEnded { host.giveUp(self, name, views: queries.views) }
                // Those that came meanwhile have built on what is not kept.
                table.discardUnwritten()
                failures += 1
                result = .failure(error)
            }
            for waiter in written { waiter.continuation.resume(returning: result) }
            guard case .failure = result else { continue }
            let later = waiting
            waiting = []
            for waiter in later { waiter.continuation.resume(returning: result) }
        }
        isWriting = false
        watchForExpiry()
        // They repeat what was in the last batch.
        let rest = waiting
        waiting = []
        for waiter in rest { waiter.continuation.resume(returning: .success(())) }
        closeIfUnused()
    }

    private func write(_ batch: DocumentTable.Batch) async throws(CollectionError) {
        guard !stored.isBegun else { return try await stored.write(batch, over: nil) }
        // What it writes is of the log before.
        await copying?.value
        try await stored.write(batch, over: table.contents(at: revision))
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
    /// Another node has the collection: what it has not written is not done, and who waits for that is told so.
    func didMove() {
        stored.end()
        queries.closeAll()
        takeApart()
        host.giveBack(name)
    }
}

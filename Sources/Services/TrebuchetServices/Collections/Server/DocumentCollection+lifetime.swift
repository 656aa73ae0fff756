internal import Trebuchet

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

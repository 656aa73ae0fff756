internal import Platform
internal import Trebuchet
internal import Transports

/// The time slices of a collection's work, which it shares with the other collections of its reactor.
extension DocumentCollection {
    /// The progress of a commit.
    struct CommitProgress {
        let connection: CallerConnection
        /// The number of mutations.
        let count: Int
        var work: FairTurns.Work
        /// The current time slice.
        var slice = ScanSlice()
        /// True when later commits of the connection wait for it.
        var hasConnection = false
        /// The number of its suspensions.
        var suspensions = 0
        /// The counted bytes of a suspended evaluation.
        var charge: CollectionMemoryLedger.Charge?

        init(_ connection: CallerConnection, count: Int) {
            self.connection = connection
            self.count = count
            work = FairTurns.Work(connection)
        }
    }

    /// Calls `body` in time slices until it returns true, or until the collection has ended.
    ///
    /// - Parameter connection: the caller; nil for the server.
    func takeTurns(of connection: CallerConnection?, _ body: () -> Bool) async {
        _ = await takeTurns(FairTurns.Work(connection), body)
    }

    /// Returns the time that the slices have used, in nanoseconds.
    private func takeTurns(_ work: FairTurns.Work, _ body: () -> Bool) async -> UInt64 {
        var work = work
        var total: UInt64 = 0
        var isDone = false
        while !isDone {
            await turns.waitForSlice(&work)
            let start = MonotonicClock.now
            isDone = isClosed || body()
            let time = MonotonicClock.now - start
            turns.charge(time, to: &work)
            total += time
        }
        return total
    }

    // MARK: Commits

    /// Begins a commit at once, unless an earlier one of its connection is suspended, or the reactor has no time for it now.
    func begin(_ commit: inout CommitProgress) async throws(CollectionError) {
        let isNext = commitsOfConnections.isEmpty || commitsOfConnections[commit.connection] == nil
        guard !isNext || !turns.mayBegin(commit.work) else { return }
        try await suspend(&commit) {}
    }

    /// Suspends a commit until its next time slice. Later commits of its connection wait for it.
    ///
    /// - Parameter body: what the commit waits for first.
    func suspend(
        _ commit: inout CommitProgress, _ body: () async throws(CollectionError) -> Void = {}
    ) async throws(CollectionError) {
        chargeSlice(of: &commit)
        commit.suspensions += 1
        if !commit.hasConnection {
            let order = commitsOfConnections[commit.connection] ?? CommitOrder(turns.tasks)
            commitsOfConnections[commit.connection] = order
            await order.waitForTurn()
            commit.hasConnection = true
        }
        try await body()
        await turns.waitForSlice(&commit.work)
        commit.slice = ScanSlice()
        try checkOpen()
    }

    /// Ends a commit in each case.
    func end(_ commit: inout CommitProgress) {
        chargeSlice(of: &commit)
        if let charge = commit.charge { host.memory.release([charge]) }
        guard commit.hasConnection, let order = commitsOfConnections[commit.connection] else { return }
        order.end()
        if !order.isTaken { commitsOfConnections[commit.connection] = nil }
    }

    private func chargeSlice(of commit: inout CommitProgress) {
        let time = commit.slice.elapsed
        if commit.suspensions > 0 {
            turns.charge(time, to: &commit.work)
        } else {
            turns.chargeFirst(time, to: &commit.work, items: commit.count)
        }
    }

    // MARK: Results

    /// Removes expired documents in later time slices. One task does that, however often this is called.
    func expireLater() {
        guard expiring == nil else { return }
        expiring = Task {
            await takeTurns(of: nil) { !expirePart() }
            expiring = nil
            watchForExpiry()
        }
    }

    /// Returns when all stored and expired changes are in the results.
    ///
    /// - Parameter connections: those of the commits that have caused them; nil is the server.
    func updateResults(for connections: [CallerConnection?]) async {
        repeat {
            beginUpdate(for: connections)
            await updating?.value
        } while queries.isShowing
    }

    /// Updates the results at once if the reactor has time, and in a task if that is not enough.
    ///
    /// The work has a separate share, because the commits of all callers wait for it.
    func beginUpdate(for connections: [CallerConnection?]) {
        guard updating == nil, queries.isShowing else { return }
        var work = FairTurns.Work(sharedBy: queries)
        if turns.mayBegin(work) {
            let (items, start) = (queries.unshownCount, MonotonicClock.now)
            let isDone = queries.continueShowing(.shared)
            let time = MonotonicClock.now - start
            if turns.chargeFirst(time, to: &work, items: items) { turns.charge(time, toAll: connections) }
            if isDone { return }
        }
        updating = Task { [work] in
            let time = await takeTurns(work) { queries.continueShowing(.shared) }
            turns.charge(time, toAll: connections)
            updating = nil
            closeIfUnused()
        }
    }
}

extension CollectionHost {
    /// Returns the time slices of an actor's reactor.
    func turns(on reactor: (any EventLoop)?) -> FairTurns {
        guard let reactor, let turns = turns[ObjectIdentifier(reactor)] else {
            // unreachable from data: each actor of a server has one of its reactors.
            preconditionFailure("an actor without a reactor of its server")
        }
        return turns.value
    }
}

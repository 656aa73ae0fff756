internal import Relays
internal import Synchronization
internal import TrebuchetClient

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The client side of a collection: the pending writes of each account, and the observers that show results.
final class ClientCollection: Sendable {
    struct Contents {
        var queues: [ClientAccount: WriteQueue] = [:]
        var observers: [Int: any CollectionObserver] = [:]
        var lastObserverNumber = 0
        /// Queries with a close in progress.
        var closing: [CollectionQuery: Task<Void, Never>] = [:]
    }

    /// The maximum size of a write in bytes. A message above the server's limit would end the connection, so larger writes are
    /// never sent.
    static let largestCommand = CollectionLimits.mutationBytes

    let name: String
    let client: TrebuchetClient
    let session: ClientSession
    let results: QueryResultCache?
    /// Each version is a response to a write.
    let responses: StateRelay<Void>
    private let file: @Sendable (ClientAccount) -> PendingWritesFile?
    /// Held while a file is written, so that older content never replaces newer content.
    private let fileLock = Mutex(())
    let contents = Mutex(Contents())

    init(
        _ name: String, _ client: TrebuchetClient, _ session: ClientSession, _ results: QueryResultCache?,
        _ responses: StateRelay<Void>, file: @escaping @Sendable (ClientAccount) -> PendingWritesFile?
    ) {
        self.name = name
        self.client = client
        self.session = session
        self.results = results
        self.responses = responses
        self.file = file
        startSending()
    }

    /// The account that reads and writes now.
    var account: ClientAccount { session.account }

    /// Runs `body` with the writes of an account; the first use reads them from their file.
    func withQueue<Result, Failure: Error>(
        _ account: ClientAccount, _ body: (inout WriteQueue) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try contents.withLock { contents throws(Failure) in
            try body(&contents.queues[account, default: WriteQueue(file(account))])
        }
    }

    // MARK: Results

    /// Returns the stored result of a query.
    func cachedResult(_ query: CollectionQuery, for account: ClientAccount) -> CachedQueryResult? {
        results?.result(of: query, in: name, for: account)
    }

    func storeResult(_ result: QueryResult, from date: Date, of query: CollectionQuery, for account: ClientAccount) {
        results?.storeResult(result, from: date, of: query, in: name, for: account) { account == self.account }
    }

    func addObserver(_ observer: any CollectionObserver) -> Int {
        contents.withLock { contents in
            contents.lastObserverNumber += 1
            contents.observers[contents.lastObserverNumber] = observer
            return contents.lastObserverNumber
        }
    }

    func remove(_ number: Int) {
        // Bound to a name, so that the observer is freed after the lock was released.
        let removed = contents.withLock { $0.observers.removeValue(forKey: number) }
        _ = removed
        removeSeenWrites()
    }

    /// Removes the writes that all results include.
    func removeSeenWrites() {
        let account = account
        let seen = observers.map(\.seen).min() ?? .max
        withQueue(account) { $0.removeWrites(through: seen) }
    }

    private var observers: [any CollectionObserver] { contents.withLock { Array($0.observers.values) } }

    func refreshObservers() { for observer in observers { observer.refresh() } }

    /// Returns the pending writes of an account, and the error because of which it accepts none.
    func pendingWrites(of account: ClientAccount) -> (pending: PendingWrites, damage: CollectionError?) {
        withQueue(account) { ($0.pending, $0.damage) }
    }

    func waits(for account: ClientAccount) -> Bool {
        withQueue(account) { $0.damage == nil && $0.pending.isWaiting }
    }

    // MARK: Writes

    /// Queues a write behind earlier ones, and shows it.
    func write(_ writes: [DocumentWrite]) -> WriteReceipt {
        let bytes = writes.reduce(32) { $0 + $1.byteCount }
        guard bytes <= Self.largestCommand else {
            let id = writes.first?.command.id.text ?? ""
            return WriteReceipt(
                .failure(CollectionError.documentTooLarge(id: id, bytes: bytes, limit: Self.largestCommand)))
        }
        guard writes.count <= CollectionLimits.commandsPerTransaction else {
            return WriteReceipt(
                .failure(CollectionError.tooManyCommands(limit: CollectionLimits.commandsPerTransaction)))
        }
        let account = account
        let number: Int
        let receipt: WriteReceipt
        do throws(CollectionError) {
            (number, receipt) = try withQueue(account) { queue throws(CollectionError) in
                try queue.enqueue(writes) { [weak self] in self?.withdraw($0, of: account) }
            }
        } catch {
            return WriteReceipt(.failure(error))
        }
        do throws(CollectionError) {
            try save(account)
        } catch {
            _ = withQueue(account) { $0.withdraw(number) }
            receipt.settle(.failure(error))
        }
        refreshObservers()
        startSending()
        return receipt
    }

    private func withdraw(_ number: Int, of account: ClientAccount) {
        guard withQueue(account, { $0.withdraw(number) }) else { return }
        try? save(account)
        refreshObservers()
    }

    private func save(_ account: ClientAccount) throws(CollectionError) {
        guard let file = file(account) else { return }
        try fileLock.withLock { _ throws(CollectionError) in
            try file.replace(withQueue(account) { $0.pending })
        }
    }

    /// Applies the server's responses.
    func settle(_ outcomes: [MutationOutcome], of account: ClientAccount) {
        let settled = withQueue(account) { queue in
            outcomes.map { outcome in
                let write = outcome.error == nil ? nil : queue.pending.write(of: outcome)
                return (write: write, receipt: queue.settle(outcome))
            }
        }
        if let shown = outcomes.last?.shown, let revision = outcomes.lazy.map(\.revision).max() {
            for observer in observers { observer.applyPositions(shown, through: revision) }
        }
        removeSeenWrites()
        // Errors are ignored: a write that stays in the file is sent again after a restart, and not executed again.
        try? save(account)
        let observers = observers
        for observer in observers { observer.refresh() }
        for (outcome, (write, receipt)) in zip(outcomes, settled) {
            if let receipt {
                receipt.settle(outcome.failure.map { .failure($0) } ?? .success(()))
            } else if let write, let reason = outcome.error {
                // The write is from before a restart, or its account was signed out since: no caller waits for it.
                let refusal = WriteRejectedError(id: write.command.id.text, command: write.command.name, reason: reason)
                for observer in observers { observer.report(refusal, of: account) }
            }
        }
        responses.update(())
    }

    /// Ends all waits because the client was closed. Writes in a file stay there, and their callers receive that error.
    func endWaits(_ error: any Error) {
        let waiting = contents.withLock { contents in
            contents.queues.keys.map { account in
                let receipts = contents.queues[account]?.removeReceipts() ?? []
                return (receipts: receipts, isPersisted: contents.queues[account]?.file != nil)
            }
        }
        for (receipts, isPersisted) in waiting {
            for receipt in receipts {
                receipt.settle(.failure(isPersisted ? CollectionError.persistedForLater : error))
            }
        }
    }

    /// Ends the waits for writes of the previous account; the writes stay pending. Writes that were made without a sign-in are
    /// still sent.
    func accountChanged(from before: ClientAccount) {
        let receipts = before == .signedOut ? [] : withQueue(before) { $0.removeReceipts() }
        for receipt in receipts { receipt.settle(.failure(CollectionError.signedOut)) }
        for observer in observers { observer.accountChanged() }
        startSending()
    }
}

extension CollectionInterface {
    nonisolated func open(_ query: CollectionQuery) async throws -> QueryTicket {
        try await open(EncodedJSON(query.value))
    }

    nonisolated func close(_ query: CollectionQuery) async throws { try await close(EncodedJSON(query.value)) }

    nonisolated func get(_ query: CollectionQuery) async throws -> QueryPage {
        try await QueryPage(json: get(EncodedJSON(query.value)).bytes)
    }
}

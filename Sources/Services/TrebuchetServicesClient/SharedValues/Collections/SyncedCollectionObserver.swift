internal import Relays
internal import SharedState
internal import Synchronization
internal import TrebuchetClient

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// Follows the result of a query, and renders it into a `SyncedCollection`.
final class SyncedCollectionObserver<Element: Codable & Identifiable & Equatable & Sendable>: CollectionObserver
where Element.ID: Codable & Sendable {
    private struct Contents {
        /// The account that reads the result and has written the pending changes shown over it.
        var account: ClientAccount
        var result: QueryResult?
        /// True when the result is from a file, and the server has not responded yet.
        var isFromCache = false
        /// True while the result is kept up to date.
        var isLive = false
        /// The newest write that the result includes.
        var position = ResultPosition()
        var lastSyncedAt: Date?
        var error: (any Error)?
        /// The current view and its reader.
        var view: String?
        /// The number of the query in responses to writes.
        var number: Int?
        var reader: Task<Void, Never>?
        /// True when the view may have been opened for another account.
        var mustReopen = false
        var following: [Task<Void, Never>] = []
        var failures = 0
        /// Decoded elements by document id, so that unchanged documents are not decoded again.
        var decoded: [DocumentID: DisplayedDocument<Element>] = [:]
        var uncertain = UncertainDocuments()

        mutating func show(_ cached: CachedQueryResult?) {
            result = cached.map { cached in
                var result = QueryResult()
                result.revision = cached.revision
                (result.count, result.hasMore) = (cached.count, cached.hasMore ?? false)
                result.documents = KeyedCollection(cached.documents)
                return result
            }
            lastSyncedAt = cached.map { Date(timeIntervalSince1970: $0.syncedAt) }
            isFromCache = cached != nil
            position = ResultPosition()
            if let cached { position.receive(cached.revision) }
        }
    }

    let query: CollectionQuery
    private let link: ClientCollection
    private let subscriber: SharedSubscriber<SyncedCollection<Element>>
    private let contents: Mutex<Contents>
    /// Each version is a request to check whether the query is open.
    private let wakes = StateRelay(())

    init(_ query: CollectionQuery, _ link: ClientCollection, _ subscriber: SharedSubscriber<SyncedCollection<Element>>)
    {
        self.query = query
        self.link = link
        self.subscriber = subscriber
        var contents = Contents(account: link.account)
        contents.show(link.cachedResult(query, for: contents.account))
        self.contents = Mutex(contents)
    }

    var seen: Int {
        contents.withLock { contents in
            if contents.error != nil, contents.result == nil || contents.isFromCache { return .max }
            return contents.isFromCache ? -1 : contents.position.seen ?? -1
        }
    }

    func applyPositions(_ shown: [String: Int], through revision: Int) {
        contents.withLock { contents in
            guard let number = contents.number, let shown = shown[String(number)] else { return }
            contents.position.confirm(received: shown, through: revision)
        }
    }

    // MARK: Rendering

    func refresh() {
        // Rendered within the change of the value, so that the last change has the newest state.
        subscriber.update { [weak self] in self?.render(&$0) }
    }

    func report(_ error: any Error, of account: ClientAccount) {
        guard contents.withLock({ $0.account == account }) else { return }
        subscriber.update { $0.writeError = error }
    }

    private func render(_ value: inout SyncedCollection<Element>) {
        let account = contents.withLock { $0.account }
        let (pending, damage) = link.pendingWrites(of: account)
        contents.withLock { contents in
            // The account has changed meanwhile; another rendering follows.
            guard contents.account == account else { return }
            contents.uncertain.remove(pending)
            let documents = pending.apply(
                over: contents.result?.documents ?? KeyedCollection(), query, seen: contents.position.seen,
                hasMore: contents.result?.hasMore ?? false, uncertain: contents.uncertain.documents)
            var decoded: [DocumentID: DisplayedDocument<Element>] = [:]
            var elements = IdentifiedArrayOf<Element>()
            var unreadable: [UnreadableDocument] = []
            for document in documents {
                let known = contents.decoded[document.id].flatMap { $0.document == document ? $0 : nil }
                let shown = known ?? DisplayedDocument(document)
                decoded[document.id] = shown
                // The app's collection cannot hold two ids that are equal for it, as composed and decomposed `é`.
                if let element = shown.element, !elements.append(element).inserted {
                    unreadable.append(
                        UnreadableDocument(id: document.id.text, reason: "its id decodes to the id of another document")
                    )
                } else if let unreadableDocument = shown.unreadable {
                    unreadable.append(unreadableDocument)
                }
            }
            contents.decoded = decoded
            value.displayed = decoded
            value.items = elements
            value.isLoading = contents.result == nil && contents.error == nil
            value.isOfAll = query.conditions.isEmpty && query.limit == nil && query.after == nil
            value.isStale = contents.result != nil && !contents.isLive
            value.isSyncing = pending.isWaiting
            value.count = contents.result?.count
            value.hasMore = contents.result?.hasMore ?? false
            value.lastSyncedAt = contents.lastSyncedAt
            value.unreadable = unreadable
            value.readError = damage ?? contents.error ?? unreadable.first?.error
        }
    }

    private func fail(_ error: any Error) {
        contents.withLock { ($0.error, $0.isLive) = (error, false) }
        link.removeSeenWrites()
        refresh()
    }

    /// Discards the result of the previous account. A result that all callers may read is kept until there is a newer one, if
    /// it was read without a sign-in.
    func accountChanged() {
        let account = link.account
        let cached = link.cachedResult(query, for: account)
        let reader = contents.withLock { contents -> Task<Void, Never>? in
            guard contents.account != account else { return nil }
            if contents.account != .signedOut || contents.isFromCache { contents.show(cached) }
            (contents.account, contents.isLive, contents.mustReopen, contents.error) = (account, false, true, nil)
            contents.uncertain = UncertainDocuments()
            contents.view = nil
            return contents.reader.take()
        }
        reader?.cancel()
        refresh()
        wakes.update(())
    }

    // MARK: Observation

    func start() {
        let connection = Task { [weak self, client = link.client] in
            for await state in client.connectionState.stream {
                guard let self else { return }
                switch state {
                case .closed: return fail(TransportError(.closed, "the client was closed"))
                case .connected, .draining: break
                case .connecting, .disconnected: lost()
                }
                wakes.update(())
            }
        }
        let opening = Task { [weak self, wakes] in
            for await _ in wakes.stream { await self?.open() }
        }
        contents.withLock { $0.following = [connection, opening] }
    }

    func stop() {
        let tasks = contents.withLock { contents in
            defer { (contents.following, contents.reader) = ([], nil) }
            return contents.following + [contents.reader].compactMap { $0 }
        }
        for task in tasks { task.cancel() }
        link.close(query)
    }

    /// Without a connection the result may be out of date.
    private func lost() {
        let wasLive = contents.withLock { contents in
            defer { contents.isLive = false }
            return contents.isLive
        }
        if wasLive { refresh() }
    }

    /// Opens the query over the current connection: a new connection has none open.
    private func open() async {
        contents.withLock { $0.number = nil }
        do {
            try await link.connect()
            let (account, mustReopen) = contents.withLock { ($0.account, $0.mustReopen) }
            let ticket = try await link.open(query, again: mustReopen)
            let isObserved = contents.withLock { contents in
                guard contents.account == account else { return false }
                if mustReopen { contents.mustReopen = false }
                if contents.view != ticket.view { contents.position.reset() }
                contents.number = ticket.number
                if let shown = ticket.shown, let revision = ticket.revision {
                    contents.position.confirm(received: shown, through: revision)
                }
                if contents.view == ticket.view, contents.reader != nil {
                    guard contents.result != nil, !contents.isFromCache, !contents.isLive else { return false }
                    (contents.isLive, contents.lastSyncedAt) = (true, Date())
                    (contents.failures, contents.error) = (0, nil)
                    return true
                }
                contents.reader?.cancel()
                contents.view = ticket.view
                contents.reader = Task { await read(ticket.view, as: account) }
                return false
            }
            if isObserved { refresh() }
        } catch {
            guard !Task.isCancelled, link.client.connectionState.currentValue != .closed else { return }
            let (failures, account) = contents.withLock { contents in
                contents.failures += 1
                return (contents.failures, contents.account)
            }
            guard let delay = ClientCollection.delay(for: error, failures, as: account) else { return fail(error) }
            try? await Task.sleep(for: delay)
            wakes.update(())
        }
    }

    /// Reads until the view ends, or `stop()`.
    private func read(_ name: String, as account: ClientAccount) async {
        var outcome: StreamOutcome?
        if let view = try? link.client.resolve(RemoteCollectionView.self, id: name) {
            let results = await view.observeResult()
            for await result in results {
                guard !Task.isCancelled else { return }
                receive(result, as: account)
            }
            outcome = results.outcome
        }
        guard !Task.isCancelled else { return }
        // The view has ended, or the connection was lost.
        let failures = contents.withLock { contents in
            (contents.reader, contents.view) = (nil, nil)
            contents.failures += 1
            return contents.failures
        }
        var delay = ClientCollection.delay(after: failures)
        // The authorization may have changed. A second failure before the first result is reported as an error, and the delay
        // between attempts grows.
        if failures > 1, case .failed(let error)? = outcome,
            ClientCollection.delay(for: error, failures, as: account) == nil
        {
            fail(error)
            delay = ClientCollection.delay(afterRefusals: failures)
        }
        try? await Task.sleep(for: delay)
        wakes.update(())
    }

    private func receive(_ result: QueryResult, as account: ClientAccount) {
        let now = Date()
        let (pending, _) = link.pendingWrites(of: account)
        let isShown = contents.withLock { contents in
            guard contents.account == account else { return false }
            contents.uncertain.retainDocuments(contents.result, seen: contents.position.seen, pending)
            (contents.result, contents.lastSyncedAt, contents.isFromCache, contents.isLive) = (result, now, false, true)
            (contents.failures, contents.error) = (0, nil)
            contents.position.receive(result.revision)
            return true
        }
        guard isShown else { return }
        refresh()
        link.removeSeenWrites()
        link.storeResult(result, from: now, of: query, for: account)
    }
}

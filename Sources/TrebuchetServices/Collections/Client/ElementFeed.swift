internal import Networking
internal import Relays
internal import SharedState
internal import Synchronization
internal import Trebuchet

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// Follows the result of a query, and shows it in a `SyncedCollection`.
final class ElementFeed<Element: Codable & Identifiable & Equatable & Sendable>: CollectionFeed
where Element.ID: Codable & Sendable {
    private struct Contents {
        var result: QueryResult?
        var error: (any Error)?
        var lastSyncedAt: Date?
        /// The view that is read, and who reads it.
        var view: String?
        var reader: Task<Void, Never>?
        var following: [Task<Void, Never>] = []
        var failures = 0
        /// Elements that were decoded, by the documents' ids: what has not changed is not decoded again.
        var decoded: [DocumentID: (document: Document, element: Element?)] = [:]
    }

    let query: CollectionQuery
    private let link: CollectionLink
    private let subscriber: SharedSubscriber<SyncedCollection<Element>>
    private let contents = Mutex(Contents())
    /// Counts reasons to look whether the query is open.
    private let wakes = StateRelay<UInt64>(0)

    init(_ query: CollectionQuery, _ link: CollectionLink, _ subscriber: SharedSubscriber<SyncedCollection<Element>>) {
        self.query = query
        self.link = link
        self.subscriber = subscriber
    }

    var seen: Int {
        contents.withLock { $0.result?.revision ?? ($0.error == nil ? -1 : .max) }
    }

    // MARK: Showing

    func refresh() {
        // Rendered in the value's turn: whoever comes last shows the newest.
        subscriber.update { [weak self] in self?.render(&$0) }
    }

    func report(_ error: any Error) { subscriber.update { $0.writeError = error } }

    private func render(_ value: inout SyncedCollection<Element>) {
        let pending = link.pending
        let damage = link.damage
        contents.withLock { contents in
            let documents = pending.show(
                over: contents.result?.documents ?? KeyedCollection(), query, seen: contents.result?.revision)
            var decoded: [DocumentID: (document: Document, element: Element?)] = [:]
            var elements = IdentifiedArrayOf<Element>()
            var unreadable: String?
            for document in documents {
                let known = contents.decoded[document.id]
                let element =
                    known?.document == document ? known?.element : try? document.value.decode(Element.self)
                decoded[document.id] = (document, element)
                // Of two with ids that the app takes for one, as `é` in one character and in two, it cannot have both.
                let isShown = element.map { elements.append($0).inserted } ?? false
                if !isShown { unreadable = document.id.text }
            }
            contents.decoded = decoded
            value.items = elements
            value.isLoading = contents.result == nil && contents.error == nil
            value.isSyncing = pending.isWaiting
            value.lastSyncedAt = contents.lastSyncedAt
            value.readError = damage ?? contents.error ?? unreadable.map { CollectionError.unreadable(id: $0) }
        }
    }

    private func fail(_ error: any Error) {
        contents.withLock { $0.error = error }
        link.forgetSeen()
        refresh()
    }

    // MARK: Following

    func start() {
        let connection = Task { [weak self, client = link.client] in
            for await state in client.connectionState.stream {
                guard let self else { return }
                if state == .closed { return fail(TransportError(.closed, "the client was closed")) }
                wakes.update { $0 &+= 1 }
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
        guard !link.shows(query), link.client.connectionState.currentValue == .connected else { return }
        Task { [link, query] in try? await link.actor().close(query) }
    }

    /// Opens the query over the connection that there is now: a new connection has none open.
    private func open() async {
        do {
            try await link.connect()
            let ticket = try await link.actor().open(query)
            contents.withLock { contents in
                (contents.failures, contents.error) = (0, nil)
                guard contents.view != ticket.view || contents.reader == nil else { return }
                contents.reader?.cancel()
                contents.view = ticket.view
                contents.reader = Task { await read(ticket.view) }
            }
        } catch {
            guard !Task.isCancelled, link.client.connectionState.currentValue != .closed else { return }
            let failures = contents.withLock { contents in
                contents.failures += 1
                return contents.failures
            }
            guard let delay = CollectionLink.delay(for: error, failures) else { return fail(error) }
            try? await Task.sleep(for: delay)
            wakes.update { $0 &+= 1 }
        }
    }

    /// Until the view goes, or `stop()`.
    private func read(_ name: String) async {
        if let view = try? link.client.resolve(CollectionView.self, id: name) {
            for await result in await view.observeResult() {
                guard !Task.isCancelled else { return }
                receive(result)
            }
        }
        guard !Task.isCancelled else { return }
        // The view is gone, or the connection was given up.
        let failures = contents.withLock { contents in
            (contents.reader, contents.view) = (nil, nil)
            contents.failures += 1
            return contents.failures
        }
        try? await Task.sleep(for: CollectionLink.delay(after: failures))
        wakes.update { $0 &+= 1 }
    }

    private func receive(_ result: QueryResult) {
        contents.withLock { contents in
            contents.result = result
            contents.lastSyncedAt = Date()
        }
        refresh()
        link.forgetSeen()
    }
}

internal import Platform
internal import Relays
internal import Trebuchet
internal import TrebuchetCluster

/// Reads what other nodes tell of sessions, and does the same here: connections lose their rights, or are somebody else from now on.
///
/// Messages say that there are news, and nothing counts on them: the news are read in their order, and twice a second also without a
/// message. Where some are not kept any more, or the engine has lost some, all sessions of the connections are looked up.
actor SessionNewsReader {
    private static let atOnce = 1_000
    private static let lookedUpAtOnce = 500

    private let shared: SharedAccounts
    private let records: AccountRecords
    private let connections: SessionConnections
    private let log: AuthLog
    /// What was read last.
    private var last: TableNews.Item?
    private var hasBegun = false
    private var isAway = false
    /// Whether the node has left its engine: nothing is to be said of that.
    private var isClosed = false
    private var hasLost = false

    init(_ shared: SharedAccounts, _ records: AccountRecords, _ connections: SessionConnections, _ log: AuthLog) {
        (self.shared, self.records, self.connections, self.log) = (shared, records, connections, log)
    }

    /// Reads what there is. What fails is tried again the next time.
    func readIfPossible() async {
        do throws(AuthError) {
            try await read()
            isAway = false
        } catch {
            if !isAway, !isClosed {
                log.storeFailed("sessions that other nodes end are not heard of: the engine does not answer")
            }
            isAway = true
        }
    }

    func read() async throws(AuthError) {
        guard !shared.isLost else { return lose() }
        var mustLookUp = shared.takeDoubt()
        do throws(AuthError) {
            while true {
                // With the last one once more: where another one stands there the engine has lost some.
                let news: TableNews
                do throws(ClusterEngineError) {
                    news = try await shared.tables.news(
                        of: SharedAccounts.table, after: last.map { max(1, $0.number) - 1 }, limit: Self.atOnce)
                } catch {
                    isClosed = error.code == .closed
                    throw .unavailable
                }
                guard shared.note(life: news.life) else { return lose() }
                var items = news.items[...]
                if let last {
                    if items.first == last { items.removeFirst() } else { mustLookUp = true }
                } else if news.cut > 0 {
                    // Of what was told before nothing is known.
                    connections.forgetsWhatWas(before: items.first.flatMap(Self.time) ?? shared.now())
                    if hasBegun { mustLookUp = true }
                }
                for item in items { apply(item) }
                last = items.last ?? (mustLookUp ? nil : last)
                if news.isComplete { break }
            }
            if mustLookUp { try await lookUpAll() }
            hasBegun = true
        } catch {
            if mustLookUp { shared.doubt() }
            throw error
        }
    }

    private static func time(_ item: TableNews.Item) -> Int64? { SessionNews(bytes: item.bytes)?.at }

    private func apply(_ item: TableNews.Item) {
        // This node has done it, in the order that its callers see.
        guard let news = SessionNews(bytes: item.bytes), news.teller != shared.teller else { return }
        for end in news.ended { connections.end(end.session, because: end.why, at: news.at) }
        for change in news.changed {
            for session in change.sessions {
                connections.update(
                    session, to: AccessTokens.principal(change.user, session: session), number: item.number,
                    at: news.at)
            }
        }
    }

    /// Looks which of the sessions of this node's connections go on, and who they are.
    private func lookUpAll() async throws(AuthError) {
        // Who comes meanwhile with a token of before is looked up by himself.
        let now = shared.now()
        connections.beginAnew(at: now)
        var sessions = connections.sessions[...]
        while !sessions.isEmpty {
            let some = Array(sessions.prefix(Self.lookedUpAtOnce))
            sessions = sessions.dropFirst(some.count)
            let families = try await records.versionedFamilies(some)
            let accounts = try await records.versionedAccounts(families.map { $0.record?.account ?? "" })
            for (session, (family, account)) in zip(some, zip(families, accounts)) {
                guard let id = family.record?.account, let found = account.record else {
                    connections.end(session, because: .unknown, at: now)
                    continue
                }
                connections.update(
                    session, to: AccessTokens.principal(found.user(id: id), session: session),
                    number: account.version, at: now)
            }
        }
    }

    /// The engine has lost the accounts: nobody is who he was.
    private func lose() {
        guard !hasLost else { return }
        hasLost = true
        log.storeFailed(
            "the engine has lost the accounts of the cluster (was it emptied?): all sessions end, and nobody can sign in until "
                + "the nodes are started again")
        let now = shared.now()
        for session in connections.sessions { connections.end(session, because: .unknown, at: now) }
    }
}

/// Has the news read as long as it is held.
final class SessionNewsWatch: Sendable {
    /// How long it takes at most, with the reading, until a node hears of news whose message was lost.
    static let pause = Duration.milliseconds(500)

    private let tasks: [Task<Void, Never>]
    private let subscription: any ClusterSubscription

    /// - Parameter sleep: waits until they are read also without a message.
    init(
        _ reader: SessionNewsReader, at tables: any ClusterTables,
        sleep: @escaping @Sendable (Duration) async throws -> Void
    ) async throws(ClusterEngineError) {
        let bell = AsyncBinarySemaphore(value: false)
        subscription = try await tables.watch(SharedAccounts.table) { _ in bell.signalNow() }
        tasks = [
            Task {
                while (try? await bell.waitCancelable()) != nil { await reader.readIfPossible() }
            },
            Task {
                while (try? await sleep(Self.pause)) != nil { bell.signalNow() }
            },
        ]
    }

    deinit {
        subscription.cancel()
        for task in tasks { task.cancel() }
    }
}

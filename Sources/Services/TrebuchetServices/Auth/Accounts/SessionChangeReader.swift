internal import Platform
internal import Relays
internal import Trebuchet
internal import TrebuchetCluster

/// Reads the session notices of other nodes and applies them to the local connections.
///
/// Messages announce new notices but are not relied on: notices are read in order, and twice a second even without a message.
/// When notices were compacted, or the coordination store has lost some, all sessions of local connections are read again.
actor SessionChangeReader {
    private static let maximumNotices = 1_000
    private static let maximumSessions = 500

    private let shared: SharedAccounts
    private let records: AccountRecords
    private let connections: SessionConnections
    private let log: AuthLog
    /// The last notice that was read.
    private var last: TableChangeFeed.Item?
    private var hasRead = false
    private var isDisconnected = false
    /// True when the node has left the coordination store; failures are not reported then.
    private var isClosed = false
    private var hasLost = false

    init(_ shared: SharedAccounts, _ records: AccountRecords, _ connections: SessionConnections, _ log: AuthLog) {
        (self.shared, self.records, self.connections, self.log) = (shared, records, connections, log)
    }

    /// Reads all new notices. An error is reported, and the next call tries again.
    func readIfPossible() async {
        do throws(AuthError) {
            try await read()
            isDisconnected = false
        } catch {
            if !isDisconnected, !isClosed {
                log.storeFailed(
                    "sessions ended by other nodes are not noticed: the coordination store does not respond")
            }
            isDisconnected = true
        }
    }

    func read() async throws(AuthError) {
        guard !shared.isLost else { return endAllSessions() }
        var mustLookUp = shared.consumeUnknownOutcome()
        do throws(AuthError) {
            while true {
                // The last notice is read once more: when it differs, the coordination store has lost some.
                let feed: TableChangeFeed
                do throws(ClusterEngineError) {
                    feed = try await shared.tables.changeFeed(
                        of: SharedAccounts.table, after: last.map { max(1, $0.number) - 1 }, limit: Self.maximumNotices)
                } catch {
                    isClosed = error.code == .closed
                    throw .unavailable
                }
                guard shared.recordGeneration(feed.tableIncarnation) else { return endAllSessions() }
                var items = feed.items[...]
                if let last {
                    if items.first == last { items.removeFirst() } else { mustLookUp = true }
                } else if feed.truncatedThrough > 0 {
                    // Earlier notices are unknown.
                    connections.discardRecords(before: items.first.flatMap(Self.time) ?? shared.now())
                    if hasRead { mustLookUp = true }
                }
                for item in items { apply(item) }
                last = items.last ?? (mustLookUp ? nil : last)
                if feed.isComplete { break }
            }
            if mustLookUp { try await lookUpAll() }
            hasRead = true
        } catch {
            if mustLookUp { shared.markUncertain() }
            throw error
        }
    }

    private static func time(_ item: TableChangeFeed.Item) -> Int64? { SessionChangeNotice(bytes: item.bytes)?.at }

    private func apply(_ item: TableChangeFeed.Item) {
        // This node has already applied its change, in the order that its callers see.
        guard let notice = SessionChangeNotice(bytes: item.bytes), notice.origin != shared.nodeID else { return }
        for end in notice.ended { connections.endSession(end.session, because: end.reason, at: notice.at) }
        for change in notice.changed {
            for session in change.sessions {
                connections.update(
                    session, to: AccessTokens.principal(change.user, session: session), number: item.number,
                    at: notice.at)
            }
        }
    }

    /// Reads the sessions of all local connections and applies their state.
    private func lookUpAll() async throws(AuthError) {
        // A connection that is admitted meanwhile with an older token is checked individually.
        let now = shared.now()
        connections.reset(at: now)
        var sessions = connections.sessions[...]
        while !sessions.isEmpty {
            let some = Array(sessions.prefix(Self.maximumSessions))
            sessions = sessions.dropFirst(some.count)
            let families = try await records.versionedFamilies(some)
            let accounts = try await records.versionedAccounts(families.map { $0.record?.account ?? "" })
            for (session, (family, account)) in zip(some, zip(families, accounts)) {
                guard let id = family.record?.account, let found = account.record else {
                    connections.endSession(session, because: .unknown, at: now)
                    continue
                }
                connections.update(
                    session, to: AccessTokens.principal(found.user(id: id), session: session),
                    number: account.version, at: now)
            }
        }
    }

    /// Handles the loss of all accounts in the coordination store: all sessions are invalid.
    private func endAllSessions() {
        guard !hasLost else { return }
        hasLost = true
        log.storeFailed(
            "the coordination store has lost the accounts of the cluster (was it emptied?): all sessions end; to allow sign-ins, "
                + "restart the nodes")
        let now = shared.now()
        for session in connections.sessions { connections.endSession(session, because: .unknown, at: now) }
    }
}

/// Reads the notices for as long as it exists.
final class SessionChangeSubscription: Sendable {
    /// The maximum delay of a notice whose message was lost, without the time to read it.
    static let pause = Duration.milliseconds(500)

    private let tasks: [Task<Void, Never>]
    private let subscription: any ClusterSubscription

    /// - Parameter sleep: waits between two reads without a message.
    init(
        _ reader: SessionChangeReader, at tables: any ClusterTables,
        sleep: @escaping @Sendable (Duration) async throws -> Void
    ) async throws(ClusterEngineError) {
        let signal = AsyncBinarySemaphore(value: false)
        subscription = try await tables.subscribeToChanges(of: SharedAccounts.table) { _ in signal.signalNow() }
        tasks = [
            Task {
                while (try? await signal.waitCancelable()) != nil { await reader.readIfPossible() }
            },
            Task {
                while (try? await sleep(Self.pause)) != nil { signal.signalNow() }
            },
        ]
    }

    deinit {
        subscription.cancel()
        for task in tasks { task.cancel() }
    }
}

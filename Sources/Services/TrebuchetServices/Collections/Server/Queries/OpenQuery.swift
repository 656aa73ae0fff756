internal import Platform
internal import Relays
internal import Trebuchet

/// A query with readers, or one that has recently lost its last reader.
///
/// It is used in its collection's isolation only.
final class OpenQuery {
    struct Key: Hashable {
        /// In its canonical form.
        let query: CollectionQuery
        /// Nil where all readers are alike.
        let reader: CollectionReader?
    }

    enum Stage {
        /// Documents are being scanned, or the view does not exist yet.
        case finding
        /// Clients can observe it.
        case ready
        /// The query is closed.
        case removed
    }

    enum Unpublished {
        case change(ResultChange)
        /// There are more steps than documents.
        case everything
    }

    /// The approximate bytes of memory for each document of the result, in addition to its row.
    private static let resultBytes = 256

    let key: Key
    private let conditionBytes: Int
    /// The number of the query in responses to writes.
    let number: Int
    let list: MatchList
    let name: String
    var window: QueryWindow
    /// Set when all documents were scanned.
    var view: CollectionView?
    /// Changes that the result does not include yet.
    private(set) var unpublished: Unpublished?
    /// The revision of its result.
    var resultRevision = 0
    /// The readers, each with the holder whose quota it has used from its start.
    var readers: [CallerConnection: QuotaHolder] = [:]
    /// Counts how often it has lost its last reader.
    var emptied = 0
    /// The holders whose quotas count the query.
    var reservations = QueryQuotas.Reservations()
    /// The holder of the last reader; its quota counts the query while it has no readers.
    var lastHolder: QuotaHolder?
    /// The bytes that count for the caller that has opened it, or for a later reader.
    var charge: CollectionMemoryLedger.Charge
    private let stage = Monitor(Stage.finding)

    /// - Parameter prefix: the beginning of the name of its view.
    init(
        _ key: Key, number: Int, list: MatchList, window: QueryWindow, charge: CollectionMemoryLedger.Charge,
        prefix: String = CollectionView.prefix
    ) {
        name = prefix + RandomToken.make()
        self.key = key
        self.number = number
        self.list = list
        self.window = window
        self.charge = charge
        conditionBytes = charge.bytes
    }

    /// The approximate number of bytes of memory that it takes, with its part of the list, which queries share.
    var byteCount: Int { conditionBytes + list.byteCount + window.count * Self.resultBytes }

    var isReady: Bool { stage.withLock { $0 == .ready } }
    var isRemoved: Bool { stage.withLock { $0 == .removed } }

    func ticket(revision: Int) -> QueryTicket {
        QueryTicket(view: name, number: number, shown: resultRevision, revision: revision)
    }

    func recordChange(_ change: ResultChange) {
        switch unpublished {
        case nil: unpublished = .change(change)
        case .change(var earlier):
            // In place, without a copy.
            unpublished = nil
            earlier.steps += change.steps
            (earlier.count, earlier.hasMore) = (change.count, change.hasMore)
            unpublished = earlier.steps.count > max(window.count, 16) ? .everything : .change(earlier)
        case .everything: break
        }
    }

    /// Publishes noted changes in the result.
    func publish(revision: Int) {
        guard let unpublished, let view else { return }
        self.unpublished = nil
        resultRevision = revision
        switch unpublished {
        case .change(let change): view.apply(change, revision: revision)
        case .everything: view.replaceResult(window.result(in: list.rows), revision: revision)
        }
    }

    /// Returns when clients can observe it, or when it was removed.
    func waitUntilFound(isolation: isolated (any Actor)? = #isolation) async {
        await stage.wait(isolation: isolation) { stage -> Void? in stage == .finding ? nil : () }
    }

    func enterStage(_ new: Stage) { stage.change { if $0 != .removed { $0 = new } }.woken.resume() }
}

internal import Relays
internal import Trebuchet

/// A query that somebody reads, or did a moment ago.
///
/// It belongs to its collection, in whose isolation it is used.
final class OpenQuery {
    struct Key: Hashable {
        /// In its canonical form.
        let query: CollectionQuery
        /// Nil where all readers are alike.
        let reader: CollectionReader?
    }

    enum Stage {
        /// Documents are looked at, or its view is not there yet.
        case finding
        /// Clients can observe it.
        case ready
        /// Nobody can any more.
        case removed
    }

    enum Unpublished {
        case change(ResultChange)
        /// More steps than there are documents.
        case everything
    }

    let key: Key
    /// What the answers of writes call it.
    let number: Int
    let list: MatchList
    let name: String
    var window: QueryWindow
    /// There once all documents were looked at.
    var view: CollectionView?
    /// What its result does not show yet.
    private(set) var unpublished: Unpublished?
    /// The revision of its result.
    var shown = 0
    /// Who reads, and whose share each used when it began.
    var readers: [CallerConnection: Holder] = [:]
    /// How often it has lost its last reader.
    var emptied = 0
    /// In whose shares it is.
    var stakes = QueryShares.Stakes()
    /// The last reader, in whose share it stays while nobody reads it.
    var lastHolder: Holder?
    private let stage = Monitor(Stage.finding)

    /// - Parameter prefix: what the name of its view begins with.
    init(_ key: Key, number: Int, list: MatchList, window: QueryWindow, prefix: String = CollectionView.prefix) {
        name = prefix + Secret.make()
        self.key = key
        self.number = number
        self.list = list
        self.window = window
    }

    var isReady: Bool { stage.withLock { $0 == .ready } }
    var isRemoved: Bool { stage.withLock { $0 == .removed } }

    func ticket(revision: Int) -> QueryTicket {
        QueryTicket(view: name, number: number, shown: shown, revision: revision)
    }

    func note(_ change: ResultChange) {
        switch unpublished {
        case nil: unpublished = .change(change)
        case .change(var noted):
            // In place, not in a copy.
            unpublished = nil
            noted.steps += change.steps
            (noted.count, noted.hasMore) = (change.count, change.hasMore)
            unpublished = noted.steps.count > max(window.count, 16) ? .everything : .change(noted)
        case .everything: break
        }
    }

    /// The result shows what was noted.
    func publish(revision: Int) {
        guard let unpublished, let view else { return }
        self.unpublished = nil
        shown = revision
        switch unpublished {
        case .change(let change): view.apply(change, revision: revision)
        case .everything: view.show(window.result(in: list.rows), revision: revision)
        }
    }

    /// Returns when it can be observed, or never will be.
    func waitUntilFound(isolation: isolated (any Actor)? = #isolation) async {
        await stage.wait(isolation: isolation) { stage -> Void? in stage == .finding ? nil : () }
    }

    func end(_ new: Stage) { stage.change { if $0 != .removed { $0 = new } }.woken.resume() }
}

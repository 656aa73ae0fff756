internal import Trebuchet

/// Documents as they were before writes were sent that add to them, as an increment does, and have no answer yet. A result that
/// comes meanwhile may have those writes or not; until the answer says it, a client shows the writes over what was there before.
/// Pure.
struct UncertainDocuments {
    /// Nil for one that was not there.
    private(set) var documents: [DocumentID: Document?] = [:]
    /// The first of the writes.
    private var since: Int?

    /// Another result comes.
    ///
    /// - Parameter revision: of the last write that the result of before shows.
    mutating func keep(_ result: QueryResult?, seen revision: Int?, _ pending: PendingWrites) {
        forget(pending)
        since = pending.firstUncertain
        for id in pending.uncertain where documents[id] == nil {
            documents[id] = .some(
                pending.answered(id, over: result?.documents ?? KeyedCollection(), seen: revision))
        }
    }

    /// Writes may have their answers.
    mutating func forget(_ pending: PendingWrites) {
        if pending.firstUncertain != since { documents = [:] }
    }
}

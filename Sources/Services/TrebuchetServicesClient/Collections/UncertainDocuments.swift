internal import TrebuchetClient

/// Documents as they were before non-idempotent writes, such as increments, were sent that have no response yet. A result that
/// arrives meanwhile may or may not include those writes. Until the response, the client shows the writes over the earlier
/// documents. Pure.
struct UncertainDocuments {
    /// The earlier documents; nil for one that did not exist.
    private(set) var documents: [DocumentID: Document?] = [:]
    /// The number of the first of the writes.
    private var since: Int?

    /// Keeps documents of the previous result before another one replaces it.
    ///
    /// - Parameter revision: the last write that the previous result includes.
    mutating func retainDocuments(_ result: QueryResult?, seen revision: Int?, _ pending: PendingWrites) {
        remove(pending)
        since = pending.firstUncertain
        for id in pending.uncertain where documents[id] == nil {
            documents[id] = .some(
                pending.answered(id, over: result?.documents ?? KeyedCollection(), seen: revision))
        }
    }

    /// Removes the documents when the writes may have their responses.
    mutating func remove(_ pending: PendingWrites) {
        if pending.firstUncertain != since { documents = [:] }
    }
}

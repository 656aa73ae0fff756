internal import Trebuchet

/// `collection-views/<secret>`: the result of one query, for all who ask for it.
///
/// It lives on the reactor of its collection: what that changes in the result leaves before the answer of the write that did it.
@Trebuchet
distributed actor CollectionView {
    @StreamedState var result: QueryResult = QueryResult()

    init(_ result: QueryResult, actorSystem: TrebuchetActorSystem) {
        self.actorSystem = actorSystem
        self.result = result
    }

    /// Called on the reactor of both.
    nonisolated func apply(_ change: ResultChange, revision: Int) {
        assumeIsolated { $0.result.apply(change, revision: revision) }
    }
}

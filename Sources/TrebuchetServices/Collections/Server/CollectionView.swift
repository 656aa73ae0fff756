internal import Networking
internal import Trebuchet

/// `collection-views/<secret>`: the result of one query, for all who ask for it.
@Trebuchet
distributed actor CollectionView {
    @StreamedState var result: QueryResult = QueryResult()
    private var view: QueryView

    init(_ view: QueryView, revision: Int, actorSystem: TrebuchetActorSystem) {
        self.view = view
        self.actorSystem = actorSystem
        result.documents = view.shown
        result.revision = revision
    }

    /// Brings changes into the result. In the order in which this is called, and without waiting.
    ///
    /// - Parameter isShown: whether a reader waits for the revision, though nothing of the result may have changed.
    nonisolated func send(_ changes: [DocumentChange], revision: Int, isShown: Bool) {
        id.home?.execute { [weak self] in
            // It is on its executor: a reactor, the one whose closure this is.
            self?.assumeIsolated { $0.apply(changes, revision: revision, isShown: isShown) }
        }
    }

    private func apply(_ changes: [DocumentChange], revision: Int, isShown: Bool) {
        var isChanged = isShown
        for change in changes where view.apply(change, to: &result.documents) { isChanged = true }
        if isChanged, revision > result.revision { result.revision = revision }
    }
}

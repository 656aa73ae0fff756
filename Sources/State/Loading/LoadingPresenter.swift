public import Observation

/// The presentation logic of a view of a loader: the displayed state, and the reactions to appearance and
/// disappearance.
///
/// - It begins with the loader's current state: a view that appears again shows the earlier result.
/// - On appearance it resets the loader and loads if the state is idle or a failure. A loaded value or running load is
///   kept.
/// - Disappearance ends the observation, not the load.
/// - Loading without progress does not change the display, unless the view has content for it.
/// - Progress with `isCanceled` cancels the loader.
@Observable
@MainActor
public final class LoadingPresenter<Loader: Loadable> {
    /// The loader, which the presenter retains.
    public let loader: Loader
    /// The displayed state. A state equal to it does not change it.
    public private(set) var shown: LoadingState<Loader.Value> = .idle
    /// Whether the view has content for loading without progress. Default false.
    @ObservationIgnored public var showsLoadingWithoutProgress: Bool
    @ObservationIgnored private let loadsOnAppear: Bool

    /// Creates a presenter.
    ///
    /// - Parameter loadsOnAppear: False leaves the call of `load()` to other code. Default true.
    public init(loader: Loader, loadsOnAppear: Bool = true, showsLoadingWithoutProgress: Bool = false) {
        self.loader = loader
        self.loadsOnAppear = loadsOnAppear
        self.showsLoadingWithoutProgress = showsLoadingWithoutProgress
        show(loader.currentState)
    }

    /// Follows the loader until the task is cancelled, as a view does while it is on the screen.
    public func appear() async {
        show(loader.currentState)
        let states = loader.state
        if loadsOnAppear { loadIfNeeded() }
        for await state in states {
            receive(state)
        }
    }

    /// Resets the loader and loads: the action of a retry or refresh button.
    public func reload() {
        loader.reset()
        startLoading()
    }

    private func loadIfNeeded() {
        switch loader.currentState {
        case .loaded, .loading: return
        case .idle, .failure: reload()
        }
    }

    /// Loads in a task independent of the view: the load outlives it, and its outcome is available when the view
    /// appears again. If two views appear at once, only one loads.
    private func startLoading() {
        Task { [loader] in await loader.loadIfNotLoading() }
    }

    private func receive(_ state: LoadingState<Loader.Value>) {
        if case .loading(let progress?) = state, progress.isCanceled == true {
            loader.cancel()
            return
        }
        show(state)
    }

    private func show(_ state: LoadingState<Loader.Value>) {
        if state == .loading(nil), !showsLoadingWithoutProgress { return }
        if shown != state { shown = state }
    }
}

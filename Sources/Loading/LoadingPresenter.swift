public import Observation

/// What a view of a loader shows, and what it does when it appears and goes.
///
/// - It begins with the loader's current state: a view that comes back shows what was loaded before.
/// - On appearing it resets the loader and loads if there is nothing yet, or a failure. What is loaded or under way is
///   left alone.
/// - Disappearing ends the observation, not the load.
/// - Loading without progress changes nothing on the screen, unless the view has something to show for it.
/// - Progress that asks for it cancels the loader.
@Observable
@MainActor
public final class LoadingPresenter<Loader: Loadable> {
    /// What is shown, and loaded; the presenter keeps it.
    public let loader: Loader
    /// What to show. A state equal to the one shown does not change it.
    public private(set) var shown: LoadingState<Loader.Value> = .idle
    /// Whether there is something to show for loading without progress. Default false.
    @ObservationIgnored public var showsLoadingWithoutProgress: Bool
    @ObservationIgnored private let loadsOnAppear: Bool

    /// - Parameter loadsOnAppear: False leaves it to others to call `load()`. Default true.
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

    /// Loads again after a failure, or anew: for the button that a view has for it.
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

    /// In a task that is not the view's: the load outlives it, and what it comes to is there when the view comes back.
    /// Of two views that appear at once, one loads.
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

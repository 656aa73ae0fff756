#if canImport(SwiftUI)
    public import SwiftUI

    /// Shows what a loader has loaded, and before that how it goes.
    ///
    ///     LoadingView(loader: loader) { profile in Text(profile.name) }
    ///         .progressView { progress in ProgressView(progress?.message ?? "") }
    ///
    /// See ``LoadingPresenter`` for what is shown when.
    public struct LoadingView<Loader: Loadable, Content: View>: View {
        @State private var presenter: LoadingPresenter<Loader>
        private let content: (Loader.Value) -> Content
        private var empty: () -> AnyView = { AnyView(EmptyView()) }
        private var progress: ((LoadingProgress?) -> AnyView)?
        private var failure: (any Error) -> AnyView = { AnyView(Text(HashableError($0).description)) }

        /// - Parameter loadOnAppear: False leaves it to others to call `load()`. Default true.
        public init(
            loader: Loader, loadOnAppear: Bool = true, @ViewBuilder content: @escaping (Loader.Value) -> Content
        ) {
            _presenter = State(initialValue: LoadingPresenter(loader: loader, loadsOnAppear: loadOnAppear))
            self.content = content
        }

        /// What the presenter shows; it is asked to appear while the view is on the screen.
        public var body: some View {
            Group {
                switch presenter.shown {
                case .idle: empty()
                case .loading(let state):
                    if let progress { progress(state) } else { ProgressView(state?.message ?? "") }
                case .failure(let error): failure(error.error)
                case .loaded(let value): content(value)
                }
            }
            .task {
                presenter.showsLoadingWithoutProgress = progress != nil
                await presenter.appear()
            }
        }

        /// What is shown before anything is loaded.
        public func emptyView<V: View>(@ViewBuilder _ view: @escaping () -> V) -> Self {
            var copy = self
            copy.empty = { AnyView(view()) }
            return copy
        }

        /// What is shown during a load; without it, only progress is shown.
        public func progressView<V: View>(@ViewBuilder _ view: @escaping (LoadingProgress?) -> V) -> Self {
            var copy = self
            copy.progress = { AnyView(view($0)) }
            return copy
        }

        /// What is shown after a failure.
        public func errorView<V: View>(@ViewBuilder _ view: @escaping (any Error) -> V) -> Self {
            var copy = self
            copy.failure = { AnyView(view($0)) }
            return copy
        }
    }
#endif

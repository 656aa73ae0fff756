#if canImport(SwiftUI)
    public import SwiftUI

    /// Shows the value of a loader, and its progress before that.
    ///
    ///     LoadingView(loader: loader) { profile in Text(profile.name) }
    ///         .progressView { progress in ProgressView(progress?.message ?? "") }
    ///
    /// See ``LoadingPresenter`` for the displayed state.
    public struct LoadingView<Loader: Loadable, Content: View>: View {
        @State private var presenter: LoadingPresenter<Loader>
        private let content: (Loader.Value) -> Content
        private var empty: () -> AnyView = { AnyView(EmptyView()) }
        private var progress: ((LoadingProgress?) -> AnyView)?
        private var failure: (any Error) -> AnyView = { AnyView(Text(HashableError($0).description)) }

        /// Creates a view of a loader.
        ///
        /// - Parameter loadOnAppear: False leaves the call of `load()` to other code. Default true.
        public init(
            loader: Loader, loadOnAppear: Bool = true, @ViewBuilder content: @escaping (Loader.Value) -> Content
        ) {
            _presenter = State(initialValue: LoadingPresenter(loader: loader, loadsOnAppear: loadOnAppear))
            self.content = content
        }

        /// The content for the presenter's state. The presenter's `appear()` runs while the view is on the screen.
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

        /// Sets the content before anything is loaded.
        public func emptyView<V: View>(@ViewBuilder _ view: @escaping () -> V) -> Self {
            var copy = self
            copy.empty = { AnyView(view()) }
            return copy
        }

        /// Sets the content during a load. Without it, only progress is shown.
        public func progressView<V: View>(@ViewBuilder _ view: @escaping (LoadingProgress?) -> V) -> Self {
            var copy = self
            copy.progress = { AnyView(view($0)) }
            return copy
        }

        /// Sets the content after a failure.
        public func errorView<V: View>(@ViewBuilder _ view: @escaping (any Error) -> V) -> Self {
            var copy = self
            copy.failure = { AnyView(view($0)) }
            return copy
        }
    }
#endif

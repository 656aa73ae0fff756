import TestSupport
import Testing

@testable import Loading

@Suite(.timeLimit(.minutes(5))) @MainActor struct LoadingPresenterTests {
    private let script = Script()

    @Test("a view loads when it appears, and a reappearing one shows the value without loading again")
    func appearing() async {
        let presenter = LoadingPresenter(loader: script.loader())
        let first = Task { await presenter.appear() }
        #expect(await eventually { script.isOpen(1) }, "the fetch has begun")
        script.end(1, .value("r1"))
        #expect(await eventually { presenter.shown == .loaded("r1") }, "the value is shown")
        first.cancel()
        await first.ended
        #expect(presenter.shown == .loaded("r1"))

        let next = LoadingPresenter(loader: presenter.loader)
        #expect(next.shown == .loaded("r1"))
        let second = Task { await next.appear() }
        await settle()
        #expect(script.count == 1)
        second.cancel()
        await second.ended
    }

    @Test("a view that disappears during a load does not stop it")
    func navigatingAway() async {
        let presenter = LoadingPresenter(loader: script.loader())
        let visit = Task { await presenter.appear() }
        #expect(await eventually { script.isOpen(1) }, "the fetch has begun")
        visit.cancel()
        await visit.ended
        await settle()
        #expect(script.cancelled.isEmpty)
        script.end(1, .value("r1"))
        #expect(await eventually { presenter.loader.currentState == .loaded("r1") }, "the value is loaded")
        let back = Task { await presenter.appear() }
        #expect(await eventually { presenter.shown == .loaded("r1") }, "the value is shown")
        #expect(script.count == 1)
        back.cancel()
        await back.ended
    }

    @Test("two views of one loader load once and show the same")
    func twoViews() async {
        let loader = script.loader()
        let presenters = [LoadingPresenter(loader: loader), LoadingPresenter(loader: loader)]
        let views = presenters.map { presenter in Task { await presenter.appear() } }
        #expect(await eventually { script.isOpen(1) }, "a fetch has begun")
        await settle()
        script.end(1, .value("r1"))
        #expect(await eventually { presenters.allSatisfy { $0.shown == .loaded("r1") } }, "both views show the value")
        #expect(presenters[0].loader.currentState == .loaded("r1"))
        for view in views { view.cancel() }
    }

    @Test("after a failure, or a cancel, appearing resets and loads", arguments: [true, false])
    func afterFailure(isFailure: Bool) async {
        let loader = script.loader()
        let load = Task { await loader.load() }
        #expect(await eventually { script.isOpen(1) }, "the fetch has begun")
        if isFailure { script.end(1, .failure(Refusal())) } else { loader.cancel() }
        await load.ended
        let presenter = LoadingPresenter(loader: loader)
        #expect(presenter.shown == (isFailure ? .failure(Refusal()) : .idle))
        let view = Task { await presenter.appear() }
        #expect(await eventually { script.isOpen(2) }, "the second fetch has begun")
        script.end(2, .value("r2"))
        #expect(await eventually { presenter.shown == .loaded("r2") }, "the value is shown")
        view.cancel()
    }

    @Test("a view that does not load on appearing only shows")
    func notLoading() async {
        let loader = script.loader()
        let presenter = LoadingPresenter(loader: loader, loadsOnAppear: false)
        let view = Task { await presenter.appear() }
        await settle()
        #expect(script.count == 0)
        loader.updateState(.loaded("x"))
        #expect(await eventually { presenter.shown == .loaded("x") }, "the value is shown")
        view.cancel()
    }

    @Test("loading without progress is shown only by a view with content for it", arguments: [true, false])
    func withoutProgress(hasView: Bool) async {
        let loader = script.loader()
        loader.updateState(.loaded("old"))
        let presenter = LoadingPresenter(loader: loader, showsLoadingWithoutProgress: hasView)
        let view = Task { await presenter.appear() }
        await settle()
        loader.updateState(.loading(nil))
        await settle()
        #expect(presenter.shown == (hasView ? .loading(nil) : .loaded("old")))
        let progress = LoadingProgress(percent: 5)
        loader.updateState(.loading(progress))
        #expect(await eventually { presenter.shown == .loading(progress) }, "progress is shown")
        view.cancel()
    }

    @Test("progress that requests it cancels the loader")
    func cancellingProgress() async {
        let loader = script.loader()
        let presenter = LoadingPresenter(loader: loader)
        let view = Task { await presenter.appear() }
        #expect(await eventually { script.isOpen(1) }, "the fetch has begun")
        loader.updateState(.loading(LoadingProgress(isCanceled: true)))
        #expect(await eventually { script.cancelled == [1] }, "the fetch is cancelled")
        #expect(loader.isCanceled)
        #expect(presenter.shown == .idle)
        view.cancel()
    }

    @Test("reload loads again")
    func reloading() async {
        let loader = BlockLoadable { 1 }
        await loader.load()
        let presenter = LoadingPresenter(loader: loader, loadsOnAppear: false)
        let observer = Observer(loader)
        #expect(await eventually { observer.seen == [.loaded(1)] }, "the observer reads")
        presenter.reload()
        #expect(
            await eventually {
                observer.seen == [.loaded(1), .idle, .loading(nil), .loaded(1)]
            }, "it was loaded again")
    }
}

internal import Platform
internal import TrebuchetActors

/// `pages/*`: what one window of the inspector shows. It follows the server while somebody observes it.
@Trebuchet
distributed actor InspectorPage {
    /// What is counted, each second.
    @StreamedState var overview: InspectorView = .nothing
    /// What the window shows beside that: as soon as something of it was noted, and else each second.
    @StreamedState var view: InspectorView = .nothing

    private let window: InspectorWindow
    private var path = ""
    private var look: InspectorViews.Look?
    private var following: Task<Void, Never>?
    /// By the monotonic clock; 0 for at once.
    private var nextOverview: UInt64 = 0
    private var nextView: UInt64 = 0
    private var earliestView: UInt64 = 0
    private var seenNews: UInt64 = 0
    private var seenPauses: UInt64 = 0
    /// Seconds since somebody has observed it.
    private var unseen = 0

    init(_ window: InspectorWindow, actorSystem: TrebuchetActorSystem) {
        self.window = window
        self.actorSystem = actorSystem
    }

    deinit { following?.cancel() }

    func deactivate() async throws { following?.cancel() }

    /// Shows what is at a path from now on, with its query and without `/inspect/`: `actors/todos?versions=200`. An empty one shows the overview
    /// alone.
    distributed func look(at path: String) throws(TrebuchetError) {
        let parts = path.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        do throws(InspectorQuery.Refused) {
            let query = try InspectorQuery(parts.count > 1 ? String(parts[1]) : nil)
            look = path.isEmpty ? nil : try window.views.look(at: String(parts[0]), query)
        } catch {
            throw TrebuchetError(.invalidArguments, error.text)
        }
        guard path.isEmpty || look != nil else { throw TrebuchetError(.invalidArguments, "nothing is at '\(path)'") }
        self.path = path
        (nextOverview, nextView, earliestView, unseen) = (0, 0, 0, 0)
        guard following == nil else { return }
        following = Task { [weak self] in
            while !Task.isCancelled, let pause = await self?.whenLocal({ await $0.follow() }) ?? nil {
                try? await Task.sleep(for: pause)
            }
        }
    }

    /// Calls a method of an actor of the server, as a principal or as nobody. Needs the right to write.
    ///
    /// - Parameter arguments: a list, in JSON.
    distributed func call(
        _ actor: String, _ method: String, _ arguments: String, _ principal: String?
    ) async throws -> InspectorView {
        let call: InspectorCall
        do throws(InspectorQuery.Refused) {
            call = try InspectorCall(actor, method, arguments, principal)
        } catch {
            throw TrebuchetError(.invalidArguments, error.text)
        }
        let server = try writable()
        return InspectorView("", 200, try await server.call(call, for: Self.who))
    }

    /// Closes a connection of the server. Needs the right to write.
    distributed func cut(_ connection: UInt64) async throws {
        guard try await writable().cut(connection: connection, for: Self.who) != nil else {
            throw TrebuchetError(.actorNotFound, "there is no such connection any more")
        }
    }

    private func writable() throws(TrebuchetError) -> TrebuchetServer {
        guard window.views.writes else {
            throw TrebuchetError(.unauthorized, "nothing is changed: the server was not started with --inspector-write")
        }
        guard let server = window.server else { throw TrebuchetError(.unavailable, "the server has ended") }
        return server
    }

    private static var who: String { Caller.current?.remoteAddress.map { "\($0)" } ?? "somebody" }

    // MARK: Following

    /// Part of a processor's time that showing something takes at most, one in so many.
    private static let share: UInt64 = 100
    private static let tick = Duration.milliseconds(100)
    private static let second: UInt64 = 1_000_000_000
    private static let longestPause = 5 * second
    /// Between two looks at a server that has more to do than is noted: most of what is shown is another one each time.
    private static let busyPause = 2 * second
    /// Seconds that it goes on while nobody observes it.
    private static let patience = 3

    /// Shows what is due. Nil when nobody sees it any more.
    private func follow() async -> Duration? {
        guard let server = window.server else { return stop() }
        var now = MonotonicClock.now
        if nextOverview <= now {
            // Who looks observes it soon, or again when the connection is back.
            unseen = await window.isSeen ? 0 : unseen + 1
            guard unseen < Self.patience else { return stop() }
            let (status, json) = await InspectorViews.shown(by: window.overview, server)
            let made = InspectorView("overview", status, json)
            if made != overview { overview = made }
            nextOverview = now &+ Self.second
            now = MonotonicClock.now
        }
        let news = window.views.recorder.news
        guard let look, nextView <= now || news != seenNews && earliestView <= now else { return Self.tick }
        let path = path
        seenNews = news
        let began = MonotonicClock.now
        let (status, json) = await InspectorViews.shown(by: look, server)
        // Something else is to be shown meanwhile.
        guard path == self.path else { return .zero }
        let made = InspectorView(path, status, json)
        if made != view { view = made }
        now = MonotonicClock.now
        let pauses = window.views.recorder.pauses
        let least = pauses == seenPauses ? 0 : Self.busyPause
        seenPauses = pauses
        earliestView = now &+ min(Self.longestPause, max(least, (now &- began) * Self.share))
        nextView = max(now &+ Self.second, earliestView)
        return Self.tick
    }

    private func stop() -> Duration? {
        following = nil
        return nil
    }
}

internal import Platform
internal import Trebuchet
internal import TrebuchetActors

/// `pages/*`: the contents of one inspector window. It queries the server while a client observes it.
@Trebuchet
distributed actor InspectorPage {
    /// Counters, updated each second.
    @StreamedState var overview: InspectorView = .nothing
    /// The selected view, updated when the recorder has news, and at least each second.
    @StreamedState var view: InspectorView = .nothing

    private let window: InspectorWindow
    private var path = ""
    private var renderer: InspectorViews.Renderer?
    private var following: Task<Void, Never>?
    /// Due time by the monotonic clock; 0 for immediately.
    private var nextOverview: UInt64 = 0
    private var nextView: UInt64 = 0
    private var earliestView: UInt64 = 0
    private var seenEventCount: UInt64 = 0
    private var seenPauses: UInt64 = 0
    /// Seconds since a client last observed it.
    private var unseen = 0

    init(_ window: InspectorWindow, actorSystem: TrebuchetActorSystem) {
        self.window = window
        self.actorSystem = actorSystem
    }

    deinit { following?.cancel() }

    func deactivate() async throws { following?.cancel() }

    /// Selects the view at a path with its query, without `/inspect/`: `actors/todos?versions=200`. An empty path selects the
    /// overview only.
    distributed func select(path: String) throws(TrebuchetError) {
        let parts = path.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        do throws(InspectorQuery.InvalidQuery) {
            let query = try InspectorQuery(parts.count > 1 ? String(parts[1]) : nil)
            renderer = path.isEmpty ? nil : try window.views.view(at: String(parts[0]), query)
        } catch {
            throw TrebuchetError(.invalidArguments, error.text)
        }
        guard path.isEmpty || renderer != nil else { throw TrebuchetError(.invalidArguments, "no view at '\(path)'") }
        self.path = path
        (nextOverview, nextView, earliestView, unseen) = (0, 0, 0, 0)
        guard following == nil else { return }
        following = Task { [weak self] in
            while !Task.isCancelled, let pause = await self?.whenLocal({ await $0.follow() }) ?? nil {
                try? await Task.sleep(for: pause)
            }
        }
    }

    /// Calls a method of an actor of the server, as a principal or anonymously. Requires write permission.
    ///
    /// - Parameter arguments: a list, in JSON.
    distributed func call(
        _ actor: String, _ method: String, _ arguments: String, _ principal: String?
    ) async throws -> InspectorView {
        let call: InspectorCall
        do throws(InspectorQuery.InvalidQuery) {
            call = try InspectorCall(actor, method, arguments, principal)
        } catch {
            throw TrebuchetError(.invalidArguments, error.text)
        }
        let server = try writable()
        return InspectorView("", 200, try await server.call(call, for: Self.peer))
    }

    /// Closes a connection of the server. Requires write permission.
    distributed func closeConnection(_ connection: UInt64) async throws {
        guard try await writable().closeConnection(connection, for: Self.peer) != nil else {
            throw TrebuchetError(.actorNotFound, "the connection is closed")
        }
    }

    private func writable() throws(TrebuchetError) -> TrebuchetServer {
        guard window.views.writes else {
            throw TrebuchetError(.unauthorized, "changes are disabled: start the server with --inspector-write")
        }
        guard let server = window.server else { throw TrebuchetError(.unavailable, "the server has shut down") }
        return server
    }

    private static var peer: String { Caller.current?.remoteAddress.map { "\($0)" } ?? "unknown path" }

    // MARK: Following

    /// The reciprocal of the share of a processor's time that updates may take.
    private static let share: UInt64 = 100
    private static let tick = Duration.milliseconds(100)
    private static let second: UInt64 = 1_000_000_000
    private static let maximumPause = 5 * second
    /// The minimum time between two updates while the recorder samples, since most of the contents change each time.
    private static let busyPause = 2 * second
    /// The number of seconds that it continues without observers.
    private static let maximumUnseenUpdates = 3

    /// Updates the views that are due. Returns nil when no client observes them any more.
    private func follow() async -> Duration? {
        guard let server = window.server?.view else { return stop() }
        var now = MonotonicClock.now
        if nextOverview <= now {
            // A client starts to observe soon after its call, or again after a reconnect.
            unseen = await window.isObserved ? 0 : unseen + 1
            guard unseen < Self.maximumUnseenUpdates else { return stop() }
            let (status, json) = await InspectorViews.json { [window] () async throws(TrebuchetError) in
                try await server.inspectedOverview(writes: window.views.writes)
            }
            let created = InspectorView("overview", status, json)
            if created != overview { overview = created }
            nextOverview = now &+ Self.second
            now = MonotonicClock.now
        }
        let eventCount = window.views.recorder.recordedEventCount
        guard let renderer, nextView <= now || eventCount != seenEventCount && earliestView <= now else {
            return Self.tick
        }
        let path = path
        seenEventCount = eventCount
        let began = MonotonicClock.now
        let (status, json) = await InspectorViews.json { () async throws(TrebuchetError) in try await renderer(server) }
        // Another view was selected meanwhile.
        guard path == self.path else { return .zero }
        let created = InspectorView(path, status, json)
        if created != view { view = created }
        now = MonotonicClock.now
        let pauses = window.views.recorder.pauses
        let least = pauses == seenPauses ? 0 : Self.busyPause
        seenPauses = pauses
        earliestView = now &+ min(Self.maximumPause, max(least, (now &- began) * Self.share))
        nextView = max(now &+ Self.second, earliestView)
        return Self.tick
    }

    private func stop() -> Duration? {
        following = nil
        return nil
    }
}

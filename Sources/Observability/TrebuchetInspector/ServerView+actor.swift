internal import Networking
internal import Synchronization
internal import Trebuchet
internal import TrebuchetActors

/// The query for one actor: `?versions=50&earlier=1`.
struct ActorDetailQuery {
    let name: String
    /// The maximum number of versions shown.
    let versions: Int
    /// True to include the value that the versions are based on.
    let wantsEarlier: Bool

    init(_ name: String, _ query: InspectorQuery) throws(InspectorQuery.InvalidQuery) {
        self.name = name
        versions = try query.number("versions", in: 0...InspectedVersions.versionLimit) ?? 50
        wantsEarlier = try query.number("earlier", in: 0...1) == 1
    }
}

extension ServerView {
    /// Returns the details of an actor; nil if it is not active. Never activates one. Takes at most 2 seconds if a reactor or the
    /// actor is blocked.
    func inspectedActor(
        _ query: ActorDetailQuery, _ recorder: InspectorRecorder
    ) async throws(TrebuchetError) -> InspectorJSON? {
        guard let record = actor(query.name) else { return nil }
        guard isInspectable(record.type) else {
            // Its calls are recorded like those of all actors.
            await recorder.startRecording()
            return .object([
                ("name", .text(record.name)), ("type", .text(record.type.name)),
                ("reactor", .text(reactorName(of: record))), ("hidden", .flag(true)), ("states", .list([])),
                ("recorded", .null), ("calls", recorder.calls(of: record.name)),
            ])
        }
        // Without a strong reference to the server, since the recorder retains the closure.
        let (pool, find) = (pool, actorFinder)
        let actor = try await recorder.inspectActor(at: record) { actor, stream in
            guard let record = Self.record(of: actor, find) else { return }
            actor.addSubscription(
                InspectorStateSubscription.follow(stream, of: record, else: pool) {
                    [weak recorder, weak actor] version in
                    guard let version, let recorder, let actor, recorder.recordUpdate(version, of: stream, in: actor)
                    else {
                        return
                    }
                    Self.recordSnapshot(stream, of: actor, find, recorder, else: pool)
                })
        }
        let description = record.type.description
        // Query the states concurrently, since each may take the whole timeout.
        let version = await withTaskGroup(of: (String, InspectorStateSubscription.SentVersion?).self) { group in
            for stream in description.states { group.addTask { (stream, await self.value(of: stream, record)) } }
            return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
        if let actor {
            for (stream, version) in version { recorder.recordSnapshot(version, of: stream, in: actor) }
        }
        return .object([
            ("name", .text(record.name)), ("type", .text(record.type.name)),
            ("reactor", .text(reactorName(of: record))), ("onDemand", .flag(record.reservation != nil)),
            ("clustered", .flag(record.isClustered)),
            ("slot", record.isClustered ? .count(record.partition) : .null),
            ("persisted", .flag(record.persisted != nil)),
            ("states", .list(description.states.map { Self.json($0, version[$0]) })),
            ("events", .list(description.events.map { .text($0) })),
            ("methods", .list(description.methods.map { Self.json($0) })),
            ("recorded", actor.map { recorder.versions(of: $0, query) } ?? .null),
            ("calls", recorder.calls(of: record.name)),
        ])
    }

    private static func record(of actor: InspectedActor, _ find: ActorFinder) -> ActorRecord? {
        find(actor.name).flatMap { actor.isOf($0) ? $0 : nil }
    }

    /// Records a snapshot of a state whose updates are patches.
    private static func recordSnapshot(
        _ stream: String, of actor: InspectedActor, _ find: ActorFinder, _ recorder: InspectorRecorder,
        else pool: SystemShard
    ) {
        guard let record = record(of: actor, find) else { return }
        // Run it later on the reactor, not while the state's subscribers are being written to.
        (record.home ?? pool).reactor.execute {
            InspectorStateSubscription.follow(stream, of: record, else: pool, isOnce: true) {
                [weak recorder, weak actor] version in
                guard let version, let actor else { return }
                recorder?.recordSnapshot(version, of: stream, in: actor)
            }
        }
    }

    private static func json(_ stream: String, _ version: InspectorStateSubscription.SentVersion?) -> InspectorJSON {
        guard let version else {
            return .object([
                ("stream", .text(stream)), ("subscribers", .null), ("version", .null), ("bytes", .null),
                ("value", .null),
                ("problem", .text("the actor did not respond within \(responseTimeout); it may be blocked")),
            ])
        }
        return .object([
            ("stream", .text(stream)), ("subscribers", .count(version.subscribers)),
            ("version", .count(version.number)),
            ("bytes", .count(version.bytes)), ("value", version.json.map { .encoded($0) } ?? .null),
        ])
    }

    private static func json(_ method: ActorTypeDescription.Method) -> InspectorJSON {
        .object([("method", .text(method.target)), ("arguments", .count(method.arguments))])
    }

    /// Returns the current value of a state as clients receive it; nil after 2 seconds.
    private func value(of stream: String, _ record: ActorRecord) async -> InspectorStateSubscription.SentVersion? {
        let watch = Mutex<InspectorStateSubscription?>(nil)
        defer { watch.withLock { $0 }?.cancel() }
        return await FirstReply.wait(within: Self.responseTimeout) { answer in
            watch.withLock { $0 = InspectorStateSubscription.follow(stream, of: record, else: pool) { answer($0) } }
        }
    }
}

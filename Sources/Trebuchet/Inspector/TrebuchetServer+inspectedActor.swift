internal import Networking
internal import Synchronization
internal import TrebuchetActors
internal import TrebuchetCluster

/// What is asked of an actor: `?versions=50&earlier=1`.
struct ActorLook {
    let name: String
    /// Versions that are shown at most.
    let versions: Int
    /// Whether also the whole value is shown that they follow from.
    let wantsEarlier: Bool

    init(_ name: String, _ query: InspectorQuery) throws(InspectorQuery.Refused) {
        self.name = name
        versions = try query.number("versions", in: 0...InspectedActor.room) ?? 50
        wantsEarlier = try query.number("earlier", in: 0...1) == 1
    }
}

extension TrebuchetServer {
    /// Nil when no actor of this name stands ready. None is made. It takes up to 2 seconds where a reactor or the actor is held up.
    func inspectedActor(
        _ look: ActorLook, _ recorder: InspectorRecorder
    ) async throws(TrebuchetError) -> InspectorJSON? {
        guard let record = directory.record(ActorName(look.name)) else { return nil }
        guard record.type.isInspectable else {
            // Calls of it are noted, as those of all.
            await recorder.look()
            return .object([
                ("name", .text(record.name)), ("type", .text(record.type.name)),
                ("reactor", .text(reactorName(of: record))), ("hidden", .flag(true)), ("states", .list([])),
                ("recorded", .null), ("calls", recorder.calls(of: record.name)),
            ])
        }
        let pool = shards[0].states
        let actor = try await recorder.look(at: record) { [weak self] actor, stream in
            guard let record = self?.record(of: actor) else { return }
            actor.add(
                StateWatch.follow(stream, of: record, else: pool) { [weak self, weak recorder, weak actor] taken in
                    guard let taken, let recorder, let actor, recorder.note(taken, of: stream, in: actor) else {
                        return
                    }
                    self?.noteWhole(stream, of: actor, recorder, else: pool)
                })
        }
        let description = record.type.description
        // All at once: each may have to be waited for.
        let taken = await withTaskGroup(of: (String, StateWatch.Taken?).self) { group in
            for stream in description.states { group.addTask { (stream, await self.value(of: stream, record)) } }
            return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
        if let actor {
            for (stream, taken) in taken { recorder.note(whole: taken, of: stream, in: actor) }
        }
        return .object([
            ("name", .text(record.name)), ("type", .text(record.type.name)),
            ("reactor", .text(reactorName(of: record))), ("onDemand", .flag(record.stake != nil)),
            ("placed", .flag(record.isPlaced)),
            ("slot", record.isPlaced ? .count(ClusterSlot(of: record.name).number) : .null),
            ("persisted", .flag(record.persisted != nil)),
            ("states", .list(description.states.map { Self.shown($0, taken[$0]) })),
            ("events", .list(description.events.map { .text($0) })),
            ("methods", .list(description.methods.map { Self.shown($0) })),
            ("recorded", actor.map { recorder.versions(of: $0, look) } ?? .null),
            ("calls", recorder.calls(of: record.name)),
        ])
    }

    private func record(of actor: InspectedActor) -> ActorRecord? {
        directory.record(ActorName(actor.name)).flatMap { actor.isOf($0) ? $0 : nil }
    }

    /// Notes a state whole that is sent as differences.
    private func noteWhole(
        _ stream: String, of actor: InspectedActor, _ recorder: InspectorRecorder, else pool: SystemShard
    ) {
        guard let record = record(of: actor) else { return }
        // Not while its subscribers are being written to.
        (record.home ?? pool).reactor.execute {
            StateWatch.follow(stream, of: record, else: pool, isOnce: true) { [weak recorder, weak actor] taken in
                guard let taken, let actor else { return }
                recorder?.note(whole: taken, of: stream, in: actor)
            }
        }
    }

    private static func shown(_ stream: String, _ taken: StateWatch.Taken?) -> InspectorJSON {
        guard let taken else {
            return .object([
                ("stream", .text(stream)), ("subscribers", .null), ("version", .null), ("bytes", .null),
                ("value", .null),
                ("problem", .text("the actor does not answer in \(answerTime): something holds it up")),
            ])
        }
        return .object([
            ("stream", .text(stream)), ("subscribers", .count(taken.subscribers)), ("version", .count(taken.number)),
            ("bytes", .count(taken.bytes)), ("value", taken.json.map { .written($0) } ?? .null),
        ])
    }

    private static func shown(_ method: ActorTypeDescription.Method) -> InspectorJSON {
        .object([("method", .text(method.target)), ("arguments", .count(method.arguments))])
    }

    /// A state as clients are shown it now; nil when it is not in 2 seconds.
    private func value(of stream: String, _ record: ActorRecord) async -> StateWatch.Taken? {
        let pool = shards[0].states
        let watch = Mutex<StateWatch?>(nil)
        defer { watch.withLock { $0 }?.leave() }
        return await Self.answer(within: Self.answerTime) { answer in
            watch.withLock { $0 = StateWatch.follow(stream, of: record, else: pool) { answer($0) } }
        }
    }
}

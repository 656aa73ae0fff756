internal import Synchronization
internal import Transports
internal import TrebuchetActors

/// Runs the `activate()` of new actors, before their first call.
struct ActorActivation: Sendable {
    /// The time limit of one `activate()`.
    static let limit = Duration.seconds(30)

    /// The loop of the timer of an actor that lives on no reactor.
    let loop: any EventLoop
    /// Limited to one line a second, because each call of a failing actor tries again.
    let log: RejectionLog

    /// Runs the `activate()` of an actor, if it has one that has not succeeded yet.
    ///
    /// - Parameter locals: for an actor that the next attempt creates again: its changes are written and its states released after
    ///   a failure, so that the next actor of its name can load them. Nil for an actor that stays.
    /// - Throws: the error of `activate()`, or `timeout`.
    func run(_ record: ActorRecord, releasingStatesIn locals: LocalActors? = nil) async throws {
        let instance = record.actorInstance
        guard record.hasActivation, !instance.hasActivated.load(ordering: .acquiring) else { return }
        do {
            guard !instance.isActivating.exchange(true, ordering: .acquiringAndReleasing) else {
                throw TrebuchetError(.unavailable, "it still runs since an earlier attempt")
            }
            try await TimeLimit.run(Self.limit, on: record.home?.reactor ?? loop) {
                defer { instance.isActivating.store(false, ordering: .releasing) }
                try await record.activate()
                instance.hasActivated.store(true, ordering: .releasing)
            }
        } catch {
            log.logLine("activate() of actor '\(record.name)' failed; the next call tries again: \(error)")
            if let locals { await release(record, locals) }
            guard let error = error as? TrebuchetError else { throw error }
            throw TrebuchetError(
                error.code, "activate() of actor '\(record.name)' failed: \(error.message)", type: error.type,
                data: error.data, retryAfter: error.retryAfter)
        }
    }

    private func release(_ record: ActorRecord, _ locals: LocalActors) async {
        _ = record.actorInstance.closeForCalls()
        guard let persisted = record.persisted, let actor = record.actor else { return }
        if let error = await persisted.retire(isUnused: true) { log.logLine(persisted.loss(error)) }
        await persisted.removeIfOver()
        (actor.id as? TrebuchetActorID).map { locals.setPersistedStates(nil, of: $0) }
    }
}

extension TrebuchetServer {
    var activation: ActorActivation { ActorActivation(loop: shards[0].reactor, log: context.failedActivations) }
}

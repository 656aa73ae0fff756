package import Distributed
internal import Synchronization

/// The actors that live in one actor system, with the data that calls need to reach them.
package final class LocalActors: ActorRegistry {
    /// A local actor, referenced weakly, with its instance and records.
    private struct Local {
        weak var actor: (any DistributedActor)?
        let instance = ActorInstance()
        /// Creates a record. Captures only the actor's type, so that it retains nothing.
        let makeRecord:
            @Sendable (LocalActors, TrebuchetActorSystem, any DistributedActor, _ name: String) -> ActorRecord?
        /// Created when a client first calls the actor through a reference.
        var record: ActorRecord?
        /// Set after the actor's states have been loaded from the store.
        var persisted: PersistedStates?
    }

    private let locals = Mutex<[ActorName: Local]>([:])
    package let retirements = PendingDeactivations()
    /// The writers of persisted states by shard; empty where no states are persisted.
    private let writers = Mutex<[ObjectIdentifier: Writers]>([:])

    private struct Writers {
        /// The writer for actors that belong to the server.
        var own: StateWriter?
        /// The writer for actors that live on one node of several.
        var clustered: StateWriter?
    }

    package init() {}

    // MARK: Registry

    package func register<Act: DistributedActor>(_ actor: Act) where Act.ID == TrebuchetActorID {
        let local = Local(actor: actor) { locals, system, actor, name in
            (actor as? any TrebuchetActor).map { locals.record(of: $0, name: name, holding: false, in: system) }
        }
        locals.withLock { $0[ActorName(actor.id.id)] = local }
    }

    package func remove(_ name: ActorName) {
        // Freed outside the lock, because freeing may run code of the actor.
        let removed = locals.withLock { $0.removeValue(forKey: name) }
        _ = removed
    }

    package func containsActor(_ name: ActorName) -> Bool { locals.withLock { $0[name] != nil } }
    package func actor(_ name: ActorName) -> (any DistributedActor)? { locals.withLock { $0[name]?.actor } }
    package func instance(of name: ActorName) -> ActorInstance? { locals.withLock { $0[name]?.instance } }

    // MARK: Records

    /// Returns the record of an actor that clients know only through references.
    package func referredRecord(_ name: String, in system: TrebuchetActorSystem) -> ActorRecord? {
        let key = ActorName(name)
        guard let local = locals.withLock({ $0[key] }) else { return nil }
        if let record = local.record { return record }
        guard let actor = local.actor, let record = local.makeRecord(self, system, actor, name) else { return nil }
        locals.withLock { $0[key]?.record = record }
        return record
    }

    /// Creates the record with which calls reach an actor.
    ///
    /// - Parameters:
    ///   - holding: True if the record keeps the actor alive.
    ///   - system: The system that receives the calls. Actors of other systems are registered there.
    package func record<A: TrebuchetActor>(
        of actor: A, name: String, holding: Bool, in system: TrebuchetActorSystem
    ) -> ActorRecord {
        TypedActorRecord(
            actor, name: name, home: system.home(of: actor), instance: actor.actorSystem.instance(of: actor.id),
            holding: holding, persisted: persistedStates(of: actor.id))
    }

    // MARK: Persistence

    /// Returns the persisted states of an actor; nil if it has none.
    func persistedStates(of id: TrebuchetActorID) -> PersistedStates? {
        locals.withLock { $0[ActorName(id.id)]?.persisted }
    }

    package func alarms(of id: TrebuchetActorID) -> PersistedAlarms? { persistedStates(of: id)?.alarms }

    package func setPersistedStates(_ states: PersistedStates?, of id: TrebuchetActorID) {
        locals.withLock { locals in
            locals[ActorName(id.id)]?.persisted = states
            locals[ActorName(id.id)]?.record = nil
        }
    }

    /// Returns the writer of a shard's actors; nil where their states are not persisted.
    ///
    /// - Parameter isClustered: True for actors that live on one node of several (`placement: .cluster`). Those are written under the
    ///   lease of the slot of their names; all others belong to their server, whichever slots it owns.
    package func writer(on shard: SystemShard, isClustered: Bool = false) -> StateWriter? {
        writers.withLock { writers in
            let writers = writers[ObjectIdentifier(shard)]
            return isClustered ? writers?.clustered : writers?.own
        }
    }

    /// Returns both writers of a shard, as far as it has them.
    package func writers(on shard: SystemShard) -> [StateWriter] {
        [writer(on: shard), writer(on: shard, isClustered: true)].compactMap(\.self)
    }

    package func persistsStates(on shard: SystemShard) -> Bool {
        writers.withLock { $0[ObjectIdentifier(shard)] != nil }
    }

    func persistsStates(isClustered: Bool) -> Bool {
        writers.withLock { $0.values.contains { (isClustered ? $0.clustered : $0.own) != nil } }
    }

    /// Set before actors are exposed.
    package func write(_ writer: StateWriter, on shard: SystemShard, isClustered: Bool = false) {
        writer.shard = shard
        writers.withLock { writers in
            if isClustered {
                writers[ObjectIdentifier(shard), default: Writers()].clustered = writer
            } else {
                writers[ObjectIdentifier(shard), default: Writers()].own = writer
            }
        }
    }

    /// Releases the writers after the server and its store were released.
    package func releaseWriters() {
        let unused = writers.withLock { writers in
            defer { writers = [:] }
            return writers
        }
        _ = unused
    }
}

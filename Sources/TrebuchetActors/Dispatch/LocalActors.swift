package import Distributed
internal import Synchronization

/// The actors that live in one actor system, and what calls need to reach them.
package final class LocalActors: ActorRegistry {
    private struct Local {
        weak var actor: (any DistributedActor)?
        let life = ActorLife()
        /// Of the actor's type, so that it holds nothing.
        let makeRecord:
            @Sendable (LocalActors, TrebuchetActorSystem, any DistributedActor, _ name: String) -> ActorRecord?
        /// Made when a client first calls the actor through a reference.
        var record: ActorRecord?
        /// Set once its states have been loaded from the store.
        var persisted: PersistedStates?
    }

    private let locals = Mutex<[ActorName: Local]>([:])
    package let retirements = Retirements()
    /// What writes persisted states, by the shard; empty where nothing is persisted.
    private let writers = Mutex<[ObjectIdentifier: Writers]>([:])

    private struct Writers {
        /// Of actors that are the server's own.
        var own: StateWriter?
        /// Of actors that one node of several has for all.
        var placed: StateWriter?
    }

    package init() {}

    // MARK: What is there

    package func add<Act: DistributedActor>(_ actor: Act) where Act.ID == TrebuchetActorID {
        let local = Local(actor: actor) { locals, system, actor, name in
            (actor as? Act).map { locals.record(of: $0, name: name, holding: false, in: system) }
        }
        locals.withLock { $0[ActorName(actor.id.id)] = local }
    }

    package func remove(_ name: ActorName) {
        // Taken out of the lock before it is freed: freeing may run code of the actor.
        let removed = locals.withLock { $0.removeValue(forKey: name) }
        _ = removed
    }

    package func has(_ name: ActorName) -> Bool { locals.withLock { $0[name] != nil } }
    package func actor(_ name: ActorName) -> (any DistributedActor)? { locals.withLock { $0[name]?.actor } }
    package func life(of name: ActorName) -> ActorLife? { locals.withLock { $0[name]?.life } }

    // MARK: Records

    /// The record of an actor that a client knows through a reference alone.
    package func referredRecord(_ name: String, in system: TrebuchetActorSystem) -> ActorRecord? {
        let key = ActorName(name)
        guard let local = locals.withLock({ $0[key] }) else { return nil }
        if let record = local.record { return record }
        guard let actor = local.actor, let record = local.makeRecord(self, system, actor, name) else { return nil }
        locals.withLock { $0[key]?.record = record }
        return record
    }

    /// What calls need to reach an actor.
    ///
    /// - Parameters:
    ///   - holding: whether the record keeps the actor alive.
    ///   - system: where calls come in. Actors of other systems are known to those.
    package func record<A: DistributedActor>(
        of actor: A, name: String, holding: Bool, in system: TrebuchetActorSystem
    ) -> ActorRecord where A.ID == TrebuchetActorID {
        let life = (actor.actorSystem as? TrebuchetActorSystem ?? system).life(of: actor.id)
        if let actor = actor as? any TrebuchetActor {
            return typedRecord(of: actor, name: name, life: life, holding: holding, in: system)
        }
        return PlainActorRecord(actor, name: name, life: life)
    }

    private func typedRecord<A: TrebuchetActor>(
        of actor: A, name: String, life: ActorLife, holding: Bool, in system: TrebuchetActorSystem
    ) -> ActorRecord {
        TypedActorRecord(
            actor, name: name, home: system.home(of: actor), life: life, holding: holding,
            persisted: persistedStates(of: actor.id))
    }

    // MARK: What is kept of them

    /// The states of an actor that are kept in a store; nil while there are none.
    func persistedStates(of id: TrebuchetActorID) -> PersistedStates? {
        locals.withLock { $0[ActorName(id.id)]?.persisted }
    }

    package func setPersistedStates(_ states: PersistedStates?, of id: TrebuchetActorID) {
        locals.withLock { locals in
            locals[ActorName(id.id)]?.persisted = states
            locals[ActorName(id.id)]?.record = nil
        }
    }

    /// Returns the writer of a shard's actors; nil where their states are not persisted.
    ///
    /// - Parameter isPlaced: whether one node of several has the actors for all (`placement: .cluster`). Those are written under the lease
    ///   of the slot of their names; all others belong to their server, which owns slots or does not.
    package func writer(on shard: SystemShard, isPlaced: Bool = false) -> StateWriter? {
        writers.withLock { writers in
            let writers = writers[ObjectIdentifier(shard)]
            return isPlaced ? writers?.placed : writers?.own
        }
    }

    /// Returns both writers of a shard, as far as it has them.
    package func writers(on shard: SystemShard) -> [StateWriter] {
        [writer(on: shard), writer(on: shard, isPlaced: true)].compactMap(\.self)
    }

    package func keepsStates(on shard: SystemShard) -> Bool {
        writers.withLock { $0[ObjectIdentifier(shard)] != nil }
    }

    func keepsStates(isPlaced: Bool) -> Bool {
        writers.withLock { $0.values.contains { (isPlaced ? $0.placed : $0.own) != nil } }
    }

    /// Set before actors are exposed.
    package func write(_ writer: StateWriter, on shard: SystemShard, isPlaced: Bool = false) {
        writer.shard = shard
        writers.withLock { writers in
            if isPlaced {
                writers[ObjectIdentifier(shard), default: Writers()].placed = writer
            } else {
                writers[ObjectIdentifier(shard), default: Writers()].own = writer
            }
        }
    }

    /// The server is gone, and its store with it.
    package func takeApart() {
        let unused = writers.withLock { writers in
            defer { writers = [:] }
            return writers
        }
        _ = unused
    }
}

internal import Distributed

/// What a store has of the events of a property.
struct StoredEvents<A: DistributedActor>: Sendable {
    let persistence: EventPersistence<A>
    let key: StateKey
    let log: StoredLog?
}

extension LocalActors {
    /// What a store has of the persisted events of an actor.
    static func storedEvents<A: TrebuchetActor>(
        of type: A.Type, _ name: String, _ store: any StateStore
    ) async throws(StateStoreError) -> [StoredEvents<A>] {
        var found: [StoredEvents<A>] = []
        for persistence in A.dispatch.streams.compactMap(\.eventPersistence) {
            let key = PersistedNamespace.events(name, persistence.property)
            found.append(StoredEvents(persistence: persistence, key: key, log: try await store.log(key)))
        }
        return found
    }

    /// Lets events be written from now on, behind those that are stored.
    static func keep<A: TrebuchetActor>(_ events: StoredEvents<A>, of actor: isolated A, in states: PersistedStates) {
        let (source, isNew) = events.persistence.source(actor, states.home)
        let kept = PersistedEvents(
            events.key, source, keeping: events.persistence.keeping(actor), byteLimit: states.eventBytes)
        states.add(kept)
        kept.begin(by: states, events.log, isNew: isNew)
    }
}

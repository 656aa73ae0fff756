internal import Distributed
internal import Platform
internal import Transports

/// What a store has of the events of a property.
struct StoredEvents<A: DistributedActor>: Sendable {
    let persistence: EventPersistence<A>
    let key: StateKey
    let log: StoredLog?
    /// What sends them, and whether nobody has asked for it before; nil until the actor was asked.
    var source: (source: EventSource, isNew: Bool)?
    /// How many are kept.
    var keeping = 0
    /// The log as it is in memory; nil for none.
    var recent: VersionLog?
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

    /// Makes what is stored what it is in memory, off the reactor.
    static func recent<A: TrebuchetActor>(
        _ events: [StoredEvents<A>], of actor: A, on home: SystemShard, byteLimit: Int
    ) async -> [StoredEvents<A>] {
        guard !events.isEmpty else { return [] }
        let (asked, budget) = await home.reactor.perform {
            // The actor's executor is this reactor.
            let asked = actor.assumeIsolated { actor in
                events.map { events in
                    var asked = events
                    asked.source = events.persistence.source(actor, home)
                    asked.keeping = events.persistence.keeping(actor)
                    return asked
                }
            }
            return (asked, home.memory)
        }
        var made: [StoredEvents<A>] = []
        for var events in asked {
            if let log = events.log, let source = events.source, source.isNew {
                let room = source.source.room(keeping: events.keeping)
                events.recent = await BlockingThreads.computed(isLong: StoredForm.log(log).isLarge) {
                    EventSource.recent(log, room: room, byteLimit: byteLimit, countedIn: budget)
                }
            }
            made.append(events)
        }
        return made
    }

    /// Lets events be written from now on, behind those that are stored.
    static func keep<A: TrebuchetActor>(_ events: StoredEvents<A>, of actor: isolated A, in states: PersistedStates) {
        guard let (source, isNew) = events.source else { return }
        let kept = PersistedEvents(events.key, source, keeping: events.keeping, byteLimit: states.eventBytes)
        states.add(kept)
        kept.begin(by: states, events.log, events.recent, isNew: isNew)
    }
}

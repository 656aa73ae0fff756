internal import Distributed
internal import Platform
internal import Transports

/// The stored events of a property.
struct StoredEvents<A: DistributedActor>: Sendable {
    let persistence: EventPersistence<A>
    let key: StateKey
    let log: StoredLog?
    /// The source of the events, and whether this load created it; nil until it is read from the actor.
    var source: (source: EventSource, isNew: Bool)?
    /// The number of events that are retained.
    var keeping = 0
    /// The log in its in-memory form; nil for none.
    var recent: VersionLog?
}

extension LocalActors {
    /// Reads the persisted events of an actor from a store.
    static func storedEvents<A: TrebuchetActor>(
        of type: A.Type, _ name: String, _ store: any StateStore
    ) async throws(StateStoreError) -> [StoredEvents<A>] {
        var found: [StoredEvents<A>] = []
        for persistence in A.dispatch.streams.compactMap(\.eventPersistence) {
            let key = PersistedNamespace.events(name, persistence.property)
            found.append(StoredEvents(persistence: persistence, key: key, log: try await store.readLog(key)))
        }
        return found
    }

    /// Converts stored events to their in-memory form, off the reactor.
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
        var created: [StoredEvents<A>] = []
        for var events in asked {
            if let log = events.log, let source = events.source, source.isNew {
                let count = source.source.retainedCount(keeping: events.keeping)
                events.recent = await BlockingThreads.computed(isLong: StoredStateFormat.log(log).isLarge) {
                    EventSource.recent(log, count: count, byteLimit: byteLimit, countedIn: budget)
                }
            }
            created.append(events)
        }
        return created
    }

    /// Starts the persistence of new events, after the stored ones.
    static func startPersistence<A: TrebuchetActor>(
        _ events: StoredEvents<A>, of actor: isolated A, in states: PersistedStates
    ) {
        guard let (source, isNew) = events.source else { return }
        let persisted = PersistedEvents(events.key, source, keeping: events.keeping, byteLimit: states.eventBytes)
        states.addLog(persisted)
        persisted.startPersistence(by: states, events.log, events.recent, isNew: isNew)
    }
}

internal import Distributed
internal import Platform
internal import Transports
internal import TrebuchetWire

/// The namespaces of `@StreamedState(persisted: true)` and of `@StreamedEvents(persisted: true)`.
package enum PersistedNamespace {
    package static let name = "states"
    package static let events = "events"

    /// Returns the key of a state, such as `todos.state`.
    static func key(_ actor: String, _ property: String) -> StateKey {
        StateKey(name, "\(actor).\(property)", partition: actor)
    }

    /// Returns the key of an event property, such as `todos.moves`.
    static func events(_ actor: String, _ property: String) -> StateKey {
        StateKey(events, "\(actor).\(property)", partition: actor)
    }
}

extension LocalActors {
    /// Returns whether actors of a type have states, events or alarms that this system persists in a store.
    package func mustLoad<A: TrebuchetActor>(_ type: A.Type, isClustered: Bool = false) -> Bool {
        persistsStates(isClustered: isClustered) && (persists(type) || A.dispatch.alarm != nil)
    }

    /// Returns whether actors of a type have an `activate()`.
    package func hasActivation<A: TrebuchetActor>(_ type: A.Type) -> Bool { A.dispatch.activate != nil }

    /// Returns whether actors of a type have states or events that are to be persisted.
    package func persists<A: TrebuchetActor>(_ type: A.Type) -> Bool {
        A.dispatch.streams.contains { $0.persistence != nil || $0.eventPersistence != nil }
    }

    /// Returns the record for an actor to be exposed, after its persisted states have been loaded.
    ///
    /// - Parameter isClustered: True if it lives on one node of several: then it is persisted under the lease of its slot, and may have
    ///   handoff state of a previous owner.
    package func loadedRecord<A: TrebuchetActor>(
        of actor: A, name: String, in system: TrebuchetActorSystem, isClustered: Bool = false
    ) async throws -> ActorRecord {
        if mustLoad(A.self, isClustered: isClustered), persistedStates(of: actor.id) == nil {
            try await load(actor, name: name, in: system, isClustered: isClustered)
        }
        if isClustered, persistsStates(isClustered: true), let actor = actor as? any HandoffActor,
            persistedStates(of: actor.id) == nil
        {
            try await restoreHandoffState(actor, name: name, in: system)
        }
        return record(of: actor, name: name, holding: true, in: system)
    }

    private func load<A: TrebuchetActor>(
        _ actor: A, name: String, in system: TrebuchetActorSystem, isClustered: Bool
    ) async throws {
        guard let home = system.home(of: actor), let writer = writer(on: home, isClustered: isClustered) else { return }
        await retirements.wait(for: name)
        let streams = A.dispatch.streams.filter { $0.persistence != nil }
        let keys = streams.compactMap { $0.persistence.map { PersistedNamespace.key(name, $0.property) } }
        let stored: [StateKey: StoredStateFormat]
        let found: [StoredEvents<A>]
        let earlier: IdempotencyIndex
        var alarms: [UInt8]?
        let settings = A.dispatch.alarm == nil ? nil : writer.alarms
        let began = MonotonicClock.now
        // Read first: if another node writes after this, the writes of this node are rejected.
        let ownership = writer.ownership(of: name)
        do throws(StateStoreError) {
            try writer.claim.acquire()
            stored = try await Self.stored(keys, writer.store)
            found = try await Self.storedEvents(of: A.self, name, writer.store)
            earlier = try await writer.partitions?.calls(of: name) ?? IdempotencyIndex()
            if settings != nil { alarms = try await writer.store.get(AlarmNamespace.key(name)) }
        } catch {
            throw error.forCallers(
                "the state of actor '\(name)' cannot be loaded: \(error.message)", isClustered: writer.partitions != nil
            )
        }
        let values = try await Self.decode(streams, keys, stored, of: actor, on: home, name, writer.disclosure)
        let table = try Self.decode(alarms, of: name, writer.disclosure)
        let events = await Self.recent(found, of: actor, on: home, byteLimit: writer.eventBytes)
        let states: PersistedStates = await home.reactor.perform {
            // The actor's executor is this reactor.
            actor.assumeIsolated { actor in
                let states = PersistedStates(name: name, home: home, writer: writer, ownership: ownership)
                states.earlier = earlier
                states.alarms = settings.map { PersistedAlarms(table, of: name, $0, by: states) }
                for (stream, (key, loaded)) in zip(streams, zip(keys, values)) {
                    loaded?.apply(actor)
                    Self.startPersistence(stream, of: actor, loaded, stored[key], as: key, in: states)
                }
                for events in events { Self.startPersistence(events, of: actor, in: states) }
                return states
            }
        }
        setPersistedStates(states, of: actor.id)
        // The values that were read are freed here and not on the reactor.
        withExtendedLifetime((stored, values, found, events)) {
            let milliseconds = Int((MonotonicClock.now - began) / 1_000_000)
            guard milliseconds >= Self.slowLoad else { return }
            let changes = stored.values.reduce(0) { $0 + ($1.log?.entries.count ?? 0) }
            let bytes = stored.values.reduce(0) { $0 + $1.byteCount }
            writer.disclosure.log(
                "slow activation: loading actor '\(name)' took \(milliseconds) ms for \(bytes) bytes in the store and "
                    + "\(changes.counted("change")); only calls to this actor waited")
        }
    }

    /// Returns the stored alarms; none for nil.
    private static func decode(
        _ alarms: [UInt8]?, of name: String, _ disclosure: ErrorDisclosure
    ) throws(TrebuchetError) -> AlarmTable {
        guard let alarms else { return AlarmTable() }
        do {
            return try AlarmTable(alarms)
        } catch {
            let key = AlarmNamespace.key(name)
            let reason = disclosure.disclose(error, of: "decoding the alarms of actor '\(name)' from \(key)").message
            throw TrebuchetError(
                .internal,
                "the alarms of actor '\(name)' cannot be decoded and are left in the store under \(key): \(reason)")
        }
    }

    private static func stored(
        _ keys: [StateKey], _ store: any StateStore
    ) async throws(StateStoreError) -> [StateKey: StoredStateFormat] {
        var stored = try await store.get(keys).mapValues { StoredStateFormat.value($0) }
        for key in keys { if let log = try await store.readLog(key) { stored[key] = .log(log) } }
        return stored
    }

    /// Starts the persistence of a state, and continues its log if possible.
    private static func startPersistence<A: TrebuchetActor>(
        _ stream: _DispatchStream<A>, of actor: isolated A, _ loaded: StatePersistence<A>.Loaded?,
        _ stored: StoredStateFormat?, as key: StateKey, in states: PersistedStates
    ) {
        let log = loaded?.isNew == false ? stored?.log : nil
        let isResumed = log.map { stream.resume(actor, $0.lastVersion) } ?? false
        guard let source = stream.persisted(actor, states.home) else { return }
        var hasValue = false
        if case .value = stored { hasValue = true }
        let persisted = PersistedLog(key, source, hasValue: hasValue)
        if isResumed, let log {
            source.resume(log)
            persisted.resume(log)
        }
        source.persist(by: states)
        source.storedVersion = stream.persistence?.version ?? 1
        states.addLog(persisted)
        // Published values have been written before; this includes the result of a migration.
        if loaded?.isNew ?? true { source.scheduleEarlierChanges() }
    }

    /// Returns the stored value of each state; nil for states that are not stored. Decodes off the reactor, so that its other
    /// actors are not blocked.
    private static func decode<A: TrebuchetActor>(
        _ streams: [_DispatchStream<A>], _ keys: [StateKey], _ stored: [StateKey: StoredStateFormat], of actor: A,
        on home: SystemShard, _ name: String, _ disclosure: ErrorDisclosure
    ) async throws(TrebuchetError) -> [StatePersistence<A>.Loaded?] {
        guard !stored.isEmpty else { return streams.map { _ in nil } }
        // The initial values belong to the actor, whose executor is this reactor.
        let (decoders, coder) = await home.reactor.perform {
            let decoders = actor.assumeIsolated { actor in streams.map { $0.persistence?.decoder(actor) } }
            return (decoders, home.makeCoder())
        }
        var values: [StatePersistence<A>.Loaded?] = []
        for (stream, (key, decode)) in zip(streams, zip(keys, decoders)) {
            guard let form = stored[key], let decode else {
                values.append(nil)
                continue
            }
            do {
                values.append(try await BlockingThreads.computed(isLong: form.isLarge) { try decode(form, coder) })
            } catch {
                // The reason contains stored data, which callers may not be authorized to see.
                let property = stream.persistence?.property ?? stream.name
                let what = "decoding '\(property)' of actor '\(name)' from \(key)"
                throw TrebuchetError(
                    .internal,
                    "the stored value of '\(property)' of actor '\(name)' cannot be decoded and is left in the store under "
                        + "\(key): \(disclosure.disclose(error, of: what).message)")
            }
        }
        return values
    }

    /// The minimum duration of a load that is logged, in milliseconds.
    private static var slowLoad: Int { 250 }
}

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

internal import Distributed
internal import Platform
internal import Transports
internal import TrebuchetWire

/// The namespaces of `@StreamedState(persisted: true)` and of `@StreamedEvents(persisted: true)`.
package enum PersistedNamespace {
    package static let name = "states"
    package static let events = "events"

    /// `todos.state`
    static func key(_ actor: String, _ property: String) -> StateKey {
        StateKey(name, "\(actor).\(property)", partition: actor)
    }

    /// `todos.moves`
    static func events(_ actor: String, _ property: String) -> StateKey {
        StateKey(events, "\(actor).\(property)", partition: actor)
    }
}

extension LocalActors {
    /// Whether actors of a type have states or events that this system keeps in a store.
    package func mustLoad<A: DistributedActor>(_ type: A.Type, isPlaced: Bool = false) -> Bool {
        keepsStates(isPlaced: isPlaced) && persists(type)
    }

    /// Whether actors of a type have states or events that are to be persisted.
    package func persists<A: DistributedActor>(_ type: A.Type) -> Bool {
        guard let type = type as? any TrebuchetActor.Type else { return false }
        return hasPersistence(type)
    }

    private func hasPersistence<A: TrebuchetActor>(_ type: A.Type) -> Bool {
        A.dispatch.streams.contains { $0.persistence != nil || $0.eventPersistence != nil }
    }

    /// The record of an actor that is to be exposed, when its persisted states have been loaded.
    ///
    /// - Parameter isPlaced: whether it lives on one node of several: then it is persisted under the lease of its slot, and may have
    ///   notes of an owner before.
    package func loadedRecord<A: DistributedActor>(
        of actor: A, name: String, in system: TrebuchetActorSystem, isPlaced: Bool = false
    ) async throws -> ActorRecord where A.ID == TrebuchetActorID {
        if mustLoad(A.self, isPlaced: isPlaced), persistedStates(of: actor.id) == nil,
            let actor = actor as? any TrebuchetActor
        {
            try await load(actor, name: name, in: system, isPlaced: isPlaced)
        }
        if isPlaced, keepsStates(isPlaced: true), let actor = actor as? any NotingActor,
            persistedStates(of: actor.id) == nil
        {
            try await goOn(actor, name: name, in: system)
        }
        return record(of: actor, name: name, holding: true, in: system)
    }

    private func load<A: TrebuchetActor>(
        _ actor: A, name: String, in system: TrebuchetActorSystem, isPlaced: Bool
    ) async throws {
        guard let home = system.home(of: actor), let writer = writer(on: home, isPlaced: isPlaced) else { return }
        await retirements.wait(for: name)
        let streams = A.dispatch.streams.filter { $0.persistence != nil }
        let keys = streams.compactMap { $0.persistence.map { PersistedNamespace.key(name, $0.property) } }
        let stored: [StateKey: StoredForm]
        let found: [StoredEvents<A>]
        let earlier: EarlierCalls
        let began = MonotonicClock.now
        // Before anything is read: what another node writes from now on makes this one's writes be refused.
        let ownership = writer.ownership(of: name)
        do throws(StateStoreError) {
            try writer.claim.take()
            stored = try await Self.stored(keys, writer.store)
            found = try await Self.storedEvents(of: A.self, name, writer.store)
            earlier = try await writer.partitions?.calls(of: name) ?? EarlierCalls()
        } catch {
            // Nothing was begun: who waits for it goes to its owner.
            let isElsewhere = writer.partitions != nil && error.code == .conflict
            let text = "the state of actor '\(name)' cannot be loaded: \(error.message)"
            throw isElsewhere ? TrebuchetError.moved(text) : TrebuchetError(.unavailable, text)
        }
        let values = try await Self.decode(streams, keys, stored, of: actor, on: home, name, writer.disclosure)
        let events = await Self.recent(found, of: actor, on: home, byteLimit: writer.eventBytes)
        let states: PersistedStates = await home.reactor.perform {
            // The actor's executor is this reactor.
            actor.assumeIsolated { actor in
                let states = PersistedStates(name: name, home: home, writer: writer, ownership: ownership)
                states.earlier = earlier
                for (stream, (key, loaded)) in zip(streams, zip(keys, values)) {
                    loaded?.apply(actor)
                    Self.keep(stream, of: actor, loaded, stored[key], as: key, in: states)
                }
                for events in events { Self.keep(events, of: actor, in: states) }
                return states
            }
        }
        setPersistedStates(states, of: actor.id)
        // What was read is freed here, and not on the reactor.
        withExtendedLifetime((stored, values, found, events)) {
            let milliseconds = Int((MonotonicClock.now - began) / 1_000_000)
            guard milliseconds >= Self.slowLoad else { return }
            let changes = stored.values.reduce(0) { $0 + ($1.log?.entries.count ?? 0) }
            let bytes = stored.values.reduce(0) { $0 + $1.byteCount }
            writer.disclosure.log(
                "loading actor '\(name)' took \(milliseconds) ms: its states have \(bytes) bytes in the store, with "
                    + "\(changes) changes; its calls waited meanwhile, and those of other actors did not")
        }
    }

    private static func stored(
        _ keys: [StateKey], _ store: any StateStore
    ) async throws(StateStoreError) -> [StateKey: StoredForm] {
        var stored = try await store.get(keys).mapValues { StoredForm.value($0) }
        for key in keys { if let log = try await store.log(key) { stored[key] = .log(log) } }
        return stored
    }

    /// Lets a state be written from now on, with its log where that goes on.
    private static func keep<A: TrebuchetActor>(
        _ stream: _DispatchStream<A>, of actor: isolated A, _ loaded: StatePersistence<A>.Loaded?,
        _ stored: StoredForm?, as key: StateKey, in states: PersistedStates
    ) {
        let log = loaded?.isNew == false ? stored?.log : nil
        let goesOn = log.map { stream.resume(actor, $0.last) } ?? false
        guard let source = stream.persisted(actor, states.home) else { return }
        var hasValue = false
        if case .value = stored { hasValue = true }
        let kept = PersistedLog(key, source, hasValue: hasValue)
        if goesOn, let log {
            source.resume(log)
            kept.resume(log)
        }
        source.persist(by: states)
        source.storedVersion = stream.persistence?.version ?? 1
        states.add(kept)
        // What is shown has been written, also what a migration makes.
        if loaded?.isNew ?? true { source.keepEarlierChanges() }
    }

    /// What was kept of each state; nil for those of which nothing was. Decoded off the reactor: other actors of it are not held up.
    private static func decode<A: TrebuchetActor>(
        _ streams: [_DispatchStream<A>], _ keys: [StateKey], _ stored: [StateKey: StoredForm], of actor: A,
        on home: SystemShard, _ name: String, _ disclosure: ErrorDisclosure
    ) async throws(TrebuchetError) -> [StatePersistence<A>.Loaded?] {
        guard !stored.isEmpty else { return streams.map { _ in nil } }
        // The initial values are the actor's, whose executor is this reactor.
        let (decoders, coder) = await home.reactor.perform {
            let decoders = actor.assumeIsolated { actor in streams.map { $0.persistence?.decoder(actor) } }
            return (decoders, home.newCoder(writing: .milliseconds))
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
                // The reason shows what is stored, and who calls need not be who may see that.
                let property = stream.persistence?.property ?? stream.name
                let what = "decoding '\(property)' of actor '\(name)' from \(key)"
                throw TrebuchetError(
                    .internal,
                    "what is stored of '\(property)' of actor '\(name)' does not decode; it stays in the store as "
                        + "\(key) until it does: \(disclosure.tell(error, of: what).message)")
            }
        }
        return values
    }

    /// Milliseconds from which on a load is written to the log.
    private static var slowLoad: Int { 250 }
}

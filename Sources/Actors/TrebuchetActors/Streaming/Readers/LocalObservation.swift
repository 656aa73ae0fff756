internal import Bytes
internal import Distributed
internal import Relays
internal import Transports
internal import TrebuchetWire

/// The observation of a state of an actor in this process: version numbers are delivered, and values are read in the actor's
/// isolation when the reader needs them.
struct LocalObservation<Value: Codable & Sendable>: Sendable {
    let states: LocalStates<Value>
    let stream: any LocalStream
    /// Set by a reader that fell behind.
    let overflow = StateRelay<TrebuchetError?>(nil)

    /// Starts an observation. Returns nil if the actor is remote, or has no state with this name and type.
    static func start<A: DistributedActor>(_ actor: A, _ name: String) async -> Self?
    where A.ActorSystem == TrebuchetActorSystem {
        guard let stream = LocalStreams.find(name, of: actor) else { return nil }
        let states = await stream.perform { $0.readers() as? LocalStates<Value> }
        return states.map { Self(states: $0, stream: stream) }
    }

    /// Returns the value with its version; nil after the actor was released.
    func read() async -> LocalStates<Value>.Version? { await stream.perform { [states] _ in states.newest } }
}

extension LocalStreams {
    /// Returns the events of an actor in this process; nil if it is remote, or has no events with this name and type.
    static func events<A: DistributedActor, Event: Sendable>(
        of actor: A, _ name: String, buffer: Int
    ) async -> EventSubscription<Event>? where A.ActorSystem == TrebuchetActorSystem {
        await find(name, of: actor)?.perform { parts in
            (parts.readers() as? EventRelay<Event>)?.subscribe(bufferLimit: buffer, onOverflow: .fail)
        }
    }

    /// Returns the events after a bookmark, as JSON; nil if the actor is remote, or has no events with this name.
    static func events<A: DistributedActor>(
        of actor: A, _ name: String, since bookmark: EventBookmark?, buffer: Int,
        _ onUndecodable: UndecodableEvents
    ) async -> EncodedStream? where A.ActorSystem == TrebuchetActorSystem {
        guard let stream = find(name, of: actor) else { return nil }
        let found: (StreamProducer, StreamPosition, EventBookmark, SystemShard, Bool)? = await stream.perform { parts in
            let hub = parts.hub()
            // Retains later events until the subscription exists.
            guard let loop = parts.loop, let position = hub.position(retainedFor: .zero) else { return nil }
            let isResumed = bookmark.map { hub.canResume(from: $0.sequence, in: $0.epoch) } ?? true
            return (hub, position, EventBookmark(epoch: hub.epoch, sequence: position.number), loop, isResumed)
        }
        guard let (hub, position, now, loop, isResumed) = found else { return nil }
        let relay = StateRelay(EncodedStream.State())
        let subscriber = LoopBound(passing: LocalSubscriber(relay, on: loop), to: loop.reactor)
        let observed = EncodedStream(
            of: StreamTarget(actorID: actor.id.id, name: name), relay: relay,
            reading: .events(buffer: buffer, since: bookmark ?? now, onUndecodable: onUndecodable),
            userInfo: actor.actorSystem.userInfo, report: actor.actorSystem.reportUndecodable
        ) { loop.reactor.run { subscriber.value.endSubscription() } }
        guard isResumed else {
            relay.finish(
                .failed(
                    TrebuchetError(.overflow, "events were missed: their actor was activated again")))
            observed.each?.finish()
            return observed
        }
        let created: Broadcaster? = await loop.reactor.perform {
            var created: Broadcaster?
            subscriber.value.subscribe(to: hub, for: observed, behind: bookmark ?? now) { created = $0 }
            return created
        }
        if let created {
            let isThere: Bool? = await stream.perform { _ in
                hub.attach(created)
                return true
            }
            if isThere == nil { created.send(.ended) }
        }
        withExtendedLifetime(position) {}
        return observed
    }

    /// Returns a state through a filter; nil if the actor is remote, or has no state with this name that supports filters.
    static func startFiltered<A: DistributedActor>(
        _ actor: A, _ name: String, through filter: StreamFilter
    ) async throws(TrebuchetError) -> EncodedStream? where A.ActorSystem == TrebuchetActorSystem {
        guard let stream = find(name, of: actor) else { return nil }
        let filter = try checked(filter)
        let found: Result<(StreamProducer, SystemShard), any Error>? = await stream.perform { parts in
            let hub = parts.hub()
            guard hub.kind == .state, let loop = parts.loop else { return nil }
            return Result { (try hub.filtered(filter, clock: loop.reactor), loop) }
        }
        guard let found else { return nil }
        do {
            let (filtered, loop) = try found.get()
            let relay = StateRelay(EncodedStream.State())
            let subscriber = LoopBound(passing: LocalSubscriber(relay, on: loop), to: loop.reactor)
            let observed = EncodedStream(
                of: StreamTarget(actorID: actor.id.id, name: name, filter: filter), relay: relay,
                userInfo: actor.actorSystem.userInfo, report: actor.actorSystem.reportUndecodable
            ) { loop.reactor.run { subscriber.value.endSubscription() } }
            let created: Broadcaster? = await loop.reactor.perform {
                var created: Broadcaster?
                subscriber.value.subscribe(to: filtered) { created = $0 }
                return created
            }
            guard let created else { return observed }
            let isThere: Bool? = await stream.perform { _ in
                filtered.attach(created)
                return true
            }
            if isThere == nil { created.send(.ended) }
            return observed
        } catch {
            throw error as? TrebuchetError ?? TrebuchetError(.internal, describe(error))
        }
    }

    static var actorNotFound: TrebuchetError { TrebuchetError(.actorNotFound, "the actor no longer exists") }

    /// Parses the filter as a server would.
    private static func checked(_ filter: StreamFilter) throws(TrebuchetError) -> StreamFilter {
        var text = ByteBuffer()
        filter.append(to: &text)
        do {
            return try StreamFilter(text.bytes)
        } catch {
            throw TrebuchetError(.invalidArguments, error.message)
        }
    }
}

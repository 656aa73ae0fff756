internal import Bytes
internal import Distributed
internal import Relays
internal import TrebuchetWire

/// Observing a state of an actor in this process: it tells of versions, and values are read in the actor's isolation when
/// the reader asks.
struct LocalObservation<Value: Codable & Sendable>: Sendable {
    let states: LocalStates<Value>
    let stream: any LocalStream
    /// Set by a reader that fell behind.
    let overflow = StateRelay<TrebuchetError?>(nil)

    /// Nil when the actor is remote, or has no state of that name and type.
    static func begin<A: DistributedActor>(_ actor: A, _ name: String) async -> Self?
    where A.ActorSystem == TrebuchetActorSystem {
        guard let stream = LocalStreams.find(name, of: actor) else { return nil }
        let states = await stream.perform { $0.readers() as? LocalStates<Value> }
        return states.map { Self(states: $0, stream: stream) }
    }

    /// The value with its version; nil when the actor has gone.
    func read() async -> LocalStates<Value>.Version? { await stream.perform { [states] _ in states.newest } }
}

extension LocalStreams {
    /// The events of an actor in this process; nil when it is remote, or has none of that name and type.
    static func events<A: DistributedActor, Event: Sendable>(
        of actor: A, _ name: String, buffer: Int
    ) async -> EventSubscription<Event>? where A.ActorSystem == TrebuchetActorSystem {
        await find(name, of: actor)?.perform { parts in
            (parts.readers() as? EventRelay<Event>)?.subscribe(bufferLimit: buffer, onOverflow: .fail)
        }
    }

    /// The same behind a place, by their values in JSON.
    static func events<A: DistributedActor>(
        of actor: A, _ name: String, since bookmark: EventBookmark?, buffer: Int,
        _ onUndecodable: UndecodableEvents
    ) async -> EncodedStream? where A.ActorSystem == TrebuchetActorSystem {
        guard let stream = find(name, of: actor) else { return nil }
        let found: (StreamHub, StreamPosition, EventBookmark, SystemShard, Bool)? = await stream.perform { parts in
            let hub = parts.hub()
            // From now on what comes is kept, until it is subscribed to.
            guard let loop = parts.loop, let position = hub.position(keptFor: .zero) else { return nil }
            let goesOn = bookmark.map { hub.goesOn(from: $0.number, in: $0.epoch) } ?? true
            return (hub, position, EventBookmark(epoch: hub.epoch, number: position.number), loop, goesOn)
        }
        guard let (hub, position, now, loop, goesOn) = found else { return nil }
        let subscriber = LocalSubscriber(on: loop)
        let observed = EncodedStream(
            of: StreamTarget(actorID: actor.id.id, name: name), relay: subscriber.relay,
            reading: .events(buffer: buffer, since: bookmark ?? now, onUndecodable: onUndecodable),
            userInfo: actor.actorSystem.userInfo, report: actor.actorSystem.reportUndecodable
        ) { subscriber.leave() }
        guard goesOn else {
            subscriber.relay.end(
                .failed(
                    TrebuchetError(.overflow, "events were missed: the actor they come from was made anew")))
            observed.each?.finish()
            return observed
        }
        let made: Broadcaster? = await loop.reactor.perform {
            var made: Broadcaster?
            subscriber.subscribe(to: hub, for: observed, behind: bookmark ?? now) { made = $0 }
            return made
        }
        if let made {
            let isThere: Bool? = await stream.perform { _ in
                hub.attach(made)
                return true
            }
            if isThere == nil { made.send(.ended) }
        }
        withExtendedLifetime(position) {}
        return observed
    }

    /// A state through a filter; nil when the actor is remote, or has no state of that name that takes a filter.
    static func begin<A: DistributedActor>(
        _ actor: A, _ name: String, through filter: StreamFilter
    ) async throws(TrebuchetError) -> EncodedStream? where A.ActorSystem == TrebuchetActorSystem {
        guard let stream = find(name, of: actor) else { return nil }
        let filter = try checked(filter)
        let found: Result<(StreamHub, SystemShard), any Error>? = await stream.perform { parts in
            let hub = parts.hub()
            guard hub.kind == .state, let loop = parts.loop else { return nil }
            return Result { (try hub.filtered(filter, clock: loop.reactor), loop) }
        }
        guard let found else { return nil }
        do {
            let (filtered, loop) = try found.get()
            let subscriber = LocalSubscriber(on: loop)
            let observed = EncodedStream(
                of: StreamTarget(actorID: actor.id.id, name: name, filter: filter), relay: subscriber.relay,
                userInfo: actor.actorSystem.userInfo, report: actor.actorSystem.reportUndecodable
            ) { subscriber.leave() }
            let made: Broadcaster? = await loop.reactor.perform {
                var made: Broadcaster?
                subscriber.subscribe(to: filtered) { made = $0 }
                return made
            }
            guard let made else { return observed }
            let isThere: Bool? = await stream.perform { _ in
                filtered.attach(made)
                return true
            }
            if isThere == nil { made.send(.ended) }
            return observed
        } catch {
            throw error as? TrebuchetError ?? TrebuchetError(.internal, describe(error))
        }
    }

    static var actorGone: TrebuchetError { TrebuchetError(.actorNotFound, "the actor is gone") }

    /// The filter as a server would read it.
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

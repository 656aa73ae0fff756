internal import Bytes
internal import Distributed
internal import Relays
internal import TrebuchetWire

/// Observing a state of an actor in this process: versions come from the state's source, values are read in the
/// actor's isolation when the reader asks.
struct LocalObservation<Value: Codable & Sendable>: Sendable {
    /// One version of a state whose delivery is `.every`.
    struct Version: Sendable {
        let value: Value
        let version: UInt64
    }

    /// What such a state has for its readers.
    struct Each: Sendable {
        let relay: EventRelay<Version>
        let buffer: Int
        /// Set by a reader that fell behind.
        let overflow = StateRelay<TrebuchetError?>(nil)
    }

    let versions: StateRelay<UInt64>
    /// Nil when the newest value alone counts.
    let each: Each?
    /// The value with its version; nil when the actor has gone.
    let read: @Sendable () async -> (value: Value, version: UInt64)?

    /// A state through a filter; nil when the actor is remote, or has no state of that name that takes a filter.
    static func begin<A: DistributedActor>(
        _ actor: A, _ name: String, through filter: StreamFilter
    ) async throws(TrebuchetError) -> RemoteStream? where A.ActorSystem == TrebuchetActorSystem {
        guard let actor = actor as? any TrebuchetActor else { return nil }
        return try await begin(typed: actor, name, through: filter)
    }

    private static func begin<A: TrebuchetActor>(
        typed actor: A, _ name: String, through filter: StreamFilter
    ) async throws(TrebuchetError) -> RemoteStream? {
        guard let stream = A.dispatch.streams.first(where: { $0.name == name }) else { return nil }
        let system = actor.actorSystem
        let filter = try checked(filter)
        let outcome: Result<RemoteStream, any Error>?? = await actor.whenLocal { actor in
            let home = system.home(of: actor)
            guard let source = stream.source(actor, home) as? any FilterableSource,
                let clock = home?.reactor ?? system.shards.first?.reactor
            else { return nil }
            return Result {
                let filtered = try source.filtered(filter, clock: clock)
                let relay = StateRelay(RemoteStream.State())
                let observed = RemoteStream(relay: relay, filter: filter, userInfo: system.userInfo) {
                    filtered.detach(relay)
                }
                filtered.attach(relay)
                return observed
            }
        }
        switch outcome {
        case .some(.some(.success(let stream))): return stream
        case .some(.some(.failure(let error))):
            throw error as? TrebuchetError ?? TrebuchetError(.internal, describe(error))
        default: return nil
        }
    }

    /// The events of an actor in this process; nil when it is remote, or has none of that name and type.
    static func events<A: DistributedActor>(
        of actor: A, _ name: String, buffer: Int
    ) async -> EventSubscription<Value>? where A.ActorSystem == TrebuchetActorSystem {
        guard let actor = actor as? any TrebuchetActor else { return nil }
        return await events(ofTyped: actor, name, buffer: buffer)
    }

    private static func events<A: TrebuchetActor>(
        ofTyped actor: A, _ name: String, buffer: Int
    ) async -> EventSubscription<Value>? {
        guard let stream = A.dispatch.streams.first(where: { $0.name == name }) else { return nil }
        let system = actor.actorSystem
        return await actor.whenLocal { actor in
            let source = stream.source(actor, system.home(of: actor)) as? EventSource<Value>
            return source?.localEvents.subscribe(bufferLimit: buffer, onOverflow: .fail)
        } ?? nil
    }

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

    /// Nil when the actor is remote, or has no state of that name and type.
    static func begin<A: DistributedActor>(_ actor: A, _ name: String, _ type: Value.Type) async -> Self?
    where A.ActorSystem == TrebuchetActorSystem {
        guard let actor = actor as? any TrebuchetActor else { return nil }
        return await begin(typed: actor, name)
    }

    private static func begin<A: TrebuchetActor>(typed actor: A, _ name: String) async -> Self? {
        guard let stream = A.dispatch.streams.first(where: { $0.name == name }) else { return nil }
        return await actor.whenLocal { actor in
            let home = actor.actorSystem.home(of: actor)
            guard let source = stream.source(actor, home) as? StateSource<Value> else { return nil }
            return Self(versions: source.versions, each: source.each) { [weak actor] in
                guard let actor else { return nil }
                return await actor.whenLocal { _ in source.snapshot } ?? nil
            }
        } ?? nil
    }
}

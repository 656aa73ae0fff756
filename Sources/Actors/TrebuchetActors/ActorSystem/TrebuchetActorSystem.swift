public import Distributed
internal import Transports
internal import Synchronization
internal import TrebuchetWire

/// The actor system of Trebuchet. The actors of a server's system live in its process; those of a client's system live at a
/// server.
///
/// `TrebuchetServer` and `TrebuchetClient` create it. Arguments and results must be `Codable & Sendable`. Actors may also be
/// passed and arrive as references.
public final class TrebuchetActorSystem: DistributedActorSystem, Sendable {
    public typealias ActorID = TrebuchetActorID
    public typealias InvocationEncoder = CallInvocationEncoder
    public typealias InvocationDecoder = CallInvocationDecoder
    public typealias ResultHandler = CallResultHandler
    public typealias SerializationRequirement = any (Codable & Sendable)

    /// The types that callers may name as generic arguments.
    package let genericTypes = GenericTypes()
    /// The actors that live here.
    private let locals: any ActorRegistry
    private let nextShard = Atomic<Int>(0)
    /// The unused coders; nil after the server or client was released, because a coder retains the system.
    private let coders = Mutex<[ValueCoder]?>([])
    /// Set once, before other code can access the system.
    private nonisolated(unsafe) var builtShards: [SystemShard] = []
    /// Weak, because its records retain actors, and those retain the system.
    private nonisolated(unsafe) weak var weakHost: (any ActorHost)?
    private nonisolated(unsafe) weak var weakServer: (any RemoteServer)?
    /// The number with which the names of a server's system begin; 0 in a client. Set once, before other code can access the
    /// system.
    private(set) nonisolated(unsafe) var serverNumber: UInt64 = 0

    /// Receives stream values that readers cannot decode. Set once, before other code can access the system.
    package nonisolated(unsafe) var reportUndecodable: @Sendable (UndecodableValue) -> Void = UndecodableValue.warn

    /// Creates a system whose actors live on these loops.
    ///
    /// - Parameter locals: the registry of the actors.
    package init(loops: [any EventLoop], locals: any ActorRegistry) {
        self.locals = locals
        builtShards = loops.map { SystemShard($0, userInfo: userInfo) }
    }

    package func serve(_ host: any ActorHost, as number: UInt64) {
        weakHost = host
        serverNumber = number
    }

    package func call(_ server: any RemoteServer) { weakServer = server }

    /// The server of a client's system; nil on a server, and after the last reference to the client was released.
    package var server: (any RemoteServer)? { weakServer }

    /// Returns the route to an actor that does not live here or can be deactivated; nil if there is none.
    package func server(of id: ActorID) -> (any RemoteServer)? {
        switch id.route {
        case .server(let server): server
        case .client, .received: nil
        case .unknown: serverNumber == 0 ? weakServer : weakHost?.route(to: id.id)
        }
    }

    /// The server of this system; nil in a client.
    package var host: (any ActorHost)? { serverNumber == 0 ? nil : weakHost }

    /// Returns the error for an actor that is not local and cannot be reached.
    func unreachable(_ id: ActorID) -> TrebuchetError {
        if case .client = id.route {
            let text =
                "actor '\(id)' lives in a client, and client actors cannot be observed: let the client call the server when its state "
                + "changes, or call the actor"
            return TrebuchetError(.methodNotFound, text)
        }
        guard serverNumber == 0 else {
            if case .received = id.route {
                let text =
                    "no local actor matches the reference '\(id)' received in a message: pass the actor's name, check the caller's "
                    + "permission, and resolve it with actorSystem.resolve(_:id:)"
                return TrebuchetError(.unavailable, text)
            }
            return TrebuchetError(.unavailable, "actor '\(id)' cannot be reached: the server has shut down")
        }
        let text =
            "the client of actor '\(id)' was released: retain it, or create references with client.resolve(_:id:), which retain it"
        return TrebuchetError(.unavailable, text)
    }

    package var shards: [SystemShard] { builtShards }

    /// Returns the instance that all records of a local actor share.
    package func instance(of id: ActorID) -> ActorInstance { locals.instance(of: ActorName(id.id)) ?? ActorInstance() }

    /// Returns the alarms of a local actor; nil for one that cannot have any.
    func alarms(of id: ActorID) -> PersistedAlarms? { locals.alarms(of: id) }

    /// The user info with which decoders turn actor names into references.
    package var userInfo: [CodingUserInfoKey: any Sendable] { [.actorSystemKey: self] }

    package func shard(of reactor: (any EventLoop)?) -> SystemShard? {
        guard let reactor else { return nil }
        return builtShards.first { $0.reactor === reactor }
    }

    // MARK: Lifetime of actors

    public func assignID<Act: DistributedActor>(_ type: Act.Type) -> ActorID where Act.ID == ActorID {
        let home = shard(of: Self.chosenHome)?.reactor ?? nextHome
        // Unguessable, because every party with the name can call the actor.
        var random = SystemRandomNumberGenerator()
        let name = [random.next(), random.next()].map { String($0 as UInt64, radix: 36) }.joined()
        return ActorID("\(type)-\(name)", home: home, server: serverNumber)
    }

    private var nextHome: any EventLoop {
        let index = nextShard.wrappingAdd(1, ordering: .relaxed).oldValue
        return builtShards[Int(UInt(bitPattern: index) % UInt(builtShards.count))].reactor
    }

    @TaskLocal private static var chosenHome: (any EventLoop)?

    /// Places actors that a closure creates on the reactor of another local actor. Changes that the other actor makes in them
    /// without suspension are then sent before its responses.
    package func withLoop<Made>(of actor: ActorID, _ make: () throws -> Made) rethrows -> Made {
        try Self.$chosenHome.withValue(actor.home) { try make() }
    }

    /// Places actors that a closure creates on a loop, if the loop belongs to this system.
    package static func withLoop<Made>(_ loop: (any EventLoop)?, _ make: () async throws -> Made) async rethrows -> Made
    {
        try await $chosenHome.withValue(loop) { try await make() }
    }

    public func actorReady<Act: DistributedActor>(_ actor: Act) where Act.ID == ActorID {
        locals.register(actor)
    }

    public func resignID(_ id: ActorID) {
        if id.isInClient { weakServer?.exportedActors.remove(ActorName(id.id)) }
        locals.remove(ActorName(id.id))
    }

    /// Returns the local actor with this name. For nil the runtime creates a reference to a remote actor.
    public func resolve<Act: DistributedActor>(id: ActorID, as type: Act.Type) throws -> Act? where Act.ID == ActorID {
        // A client chooses the names of its actors, so the name must not resolve to a local actor.
        if case .client = id.route { return nil }
        reportUse(of: id)
        let name = ActorName(id.id)
        // A received reference is called on behalf of the caller, who may have no permission to call other actors by name.
        if case .received = id.route {} else if weakHost?.mayDeactivate(name) == true { return nil }
        let found = locals.actor(name) ?? weakHost?.actor(name)
        guard let found else { return nil }
        guard let actor = found as? Act else {
            throw TrebuchetError(.invalidArguments, "actor '\(id)' is a \(Swift.type(of: found)), not a \(type)")
        }
        return actor
    }

    /// Returns the shard of the reactor that an actor lives on; nil with `executor: .concurrent` or a custom executor.
    func home<A: TrebuchetActor>(of actor: A) -> SystemShard? {
        guard A.dispatch.executor == .reactor, let shard = shard(of: actor.id.home),
            Self.isSame(actor.unownedExecutor, shard.reactor.asUnownedSerialExecutor())
        else { return nil }
        return shard
    }

    private static func isSame(_ a: UnownedSerialExecutor, _ b: UnownedSerialExecutor) -> Bool {
        // An executor consists of two words: the object and its kind.
        unsafeBitCast(a, to: (Int, Int).self).0 == unsafeBitCast(b, to: (Int, Int).self).0
    }

    /// Returns a reference to an actor with this name. In an actor of a server:
    ///
    ///     let match = try actorSystem.resolve(Match.self, id: "matches/7")
    ///     let score = try await match.score()
    ///
    /// On a server the result is the exposed actor itself if it is in memory and cannot be deactivated. Any other actor is
    /// located and activated when it is called or observed: a virtual actor, one with an `idle` time, or one on a cluster node.
    /// The caller of these calls is the server (`Caller.isServer`), so `authorize` and rate limits do not apply. Deadlines,
    /// repeats of `@Idempotent` calls and errors work as for clients. On a client this equals `TrebuchetClient.resolve(_:id:)`,
    /// except that the reference does not keep the client connected.
    ///
    /// This method does not check whether the actor exists; a call does.
    ///
    /// - Throws: `TrebuchetError` with `invalidArguments` if a local actor of another type has the name.
    public func resolve<A: DistributedActor>(_ type: A.Type, id: String) throws -> A
    where A.ActorSystem == TrebuchetActorSystem {
        try A.resolve(id: TrebuchetActorID(id), using: self)
    }

    // MARK: Calls of remote actors

    public func makeInvocationEncoder() -> CallInvocationEncoder { CallInvocationEncoder(coder: acquireCoder()) }

    public func remoteCall<Act, Err, Res>(
        on actor: Act, target: RemoteCallTarget, invocation: inout CallInvocationEncoder, throwing: Err.Type,
        returning: Res.Type
    ) async throws -> Res where Act: DistributedActor, Act.ID == ActorID, Err: Error, Res: Codable & Sendable {
        let reply = try await call(actor, target, &invocation)
        guard let bytes = reply else {
            throw TrebuchetError(.internal, "the response has no result, but \(target) returns \(Res.self)")
        }
        let coder = acquireCoder()
        defer { releaseCoder(coder) }
        do {
            return try actor.id.withReferenceScope {
                try bytes.withUnsafeBytes { try coder.decode(Res.self, from: $0) }
            }
        } catch {
            throw TrebuchetError(.internal, "the result of \(target) cannot be decoded: \(describe(error))")
        }
    }

    public func remoteCallVoid<Act, Err>(
        on actor: Act, target: RemoteCallTarget, invocation: inout CallInvocationEncoder, throwing: Err.Type
    ) async throws where Act: DistributedActor, Act.ID == ActorID, Err: Error {
        _ = try await call(actor, target, &invocation)
    }

    private func call<Act: DistributedActor>(
        _ actor: Act, _ target: RemoteCallTarget, _ invocation: inout CallInvocationEncoder
    ) async throws -> [UInt8]? where Act.ID == ActorID {
        reportUse(of: actor.id)
        if case .client(let actorThere) = actor.id.route {
            return try await actorThere.call(target, of: Act.self, &invocation, in: self)
        }
        guard let server = server(of: actor.id) else { throw unreachable(actor.id) }
        let method = try server.methods.method(target, of: Act.self)
        let request = invocation.finish(on: Act.self, method)
        invocation.releaseCoder(to: self)
        do {
            return try await server.call(
                actorID: actor.id.id, target: method.name, request, isIdempotent: method.isIdempotent)
        } catch let error as TrebuchetError where error.code == .application {
            throw server.errors.typed(error, thrownBy: Act.self)
        }
    }

    /// Reports to the event handlers for calls that a running method uses another actor.
    private func reportUse(of id: ActorID) {
        guard serverNumber != 0, let events = builtShards.first?.events, events.isEnabled(for: .calls) else { return }
        let call = EventBus.currentCall
        if call != 0 { events.emit(.callDispatched(call: call, actor: id.id)) }
    }

    // MARK: References

    /// Returns the error for an actor name that must not be sent, because it would name another actor or none at the other
    /// side. Returns nil if it may be sent, and if that cannot be determined.
    func refusal(ofSending id: ActorID) -> TrebuchetError? {
        let code: TrebuchetError.Code = serverNumber == 0 ? .invalidArguments : .internal
        let own = weakServer
        if id.isInClient {
            if let own, knows(id) { return own.exportedActors.refusal(of: id) }
            return TrebuchetError(
                code,
                "actor '\(id)' lives in another client: send a reference to it only in calls over that client, because "
                    + "only its own server can call it")
        }
        if case .client = id.route {
            return TrebuchetError(
                code,
                "actor '\(id)' lives in a client, and only the server with the reference can call it: the reference cannot be forwarded "
                    + "or stored in a state; let the server call the actor")
        }
        if let remote = id.remote, let own, remote === own || remote.reachesSameAddress(as: own) {
            return nil
        }
        let receiver = own?.serverNumber ?? serverNumber
        let home = id.remote?.serverNumber ?? id.server
        guard receiver != 0, home != 0, receiver != home else { return nil }
        let server = id.remote.map { "at \($0.peerName)" } ?? "at another server of this process"
        return TrebuchetError(
            code,
            "actor '\(id)' lives \(server), and a reference to it is not valid elsewhere: send what the receiver needs to "
                + "resolve it, or call it here")
    }

    /// Returns whether the actor lives in this system.
    private func knows(_ id: ActorID) -> Bool { locals.containsActor(ActorName(id.id)) }

    /// Permits the server of this client to call an actor of the client.
    func exportActor(_ id: ActorID) { weakServer?.exportedActors.insert(ActorName(id.id)) }

    // MARK: Coders

    /// Returns a coder for exclusive use until it is returned with `releaseCoder`.
    package func acquireCoder() -> ValueCoder {
        coders.withLock { $0?.popLast() } ?? ValueCoder(userInfo: userInfo)
    }

    package func releaseCoder(_ coder: ValueCoder) {
        coders.withLock { if $0?.count ?? 16 < 16 { $0?.append(coder) } }
    }

    /// Breaks reference cycles through the system after the server or client was released.
    package func releaseReferences() {
        let unused = coders.withLock { coders in
            defer { coders = nil }
            return coders
        }
        _ = unused
        for shard in shards { shard.reactor.run { shard.releaseCoders() } }
    }
}

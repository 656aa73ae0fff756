public import Distributed
internal import Transports
internal import Synchronization
internal import TrebuchetWire

/// The actor system of Trebuchet: of a server, whose actors live here, or of a client, whose actors live at a server.
///
/// Made by `TrebuchetServer` and `TrebuchetClient`. Arguments and results must be `Codable & Sendable`; actors may be
/// passed too and arrive as references.
public final class TrebuchetActorSystem: DistributedActorSystem, Sendable {
    public typealias ActorID = TrebuchetActorID
    public typealias InvocationEncoder = CallInvocationEncoder
    public typealias InvocationDecoder = CallInvocationDecoder
    public typealias ResultHandler = CallResultHandler
    public typealias SerializationRequirement = any (Codable & Sendable)

    /// The actors that live here.
    private let locals: any ActorRegistry
    private let nextShard = Atomic<Int>(0)
    /// Nil once the server or client of the system is gone: a coder holds the system.
    private let coders = Mutex<[ValueCoder]?>([])
    /// Set once, before the system is handed out.
    private nonisolated(unsafe) var builtShards: [SystemShard] = []
    /// Its records hold actors, and those hold the system.
    private nonisolated(unsafe) weak var heldHost: (any ActorHost)?
    private nonisolated(unsafe) weak var heldServer: (any RemoteServer)?
    /// Of a server's system: the number that its names begin with. Set once, before the system is handed out; 0 in a client.
    private(set) nonisolated(unsafe) var serverNumber: UInt64 = 0

    /// Receives what readers of streams cannot decode. Set once, before the system is handed out.
    package nonisolated(unsafe) var reportUndecodable: @Sendable (UndecodableValue) -> Void = UndecodableValue.warn

    /// A system whose actors live on these loops.
    ///
    /// - Parameter locals: where they are found.
    package init(loops: [any EventLoop], locals: any ActorRegistry) {
        self.locals = locals
        builtShards = loops.map { SystemShard($0, userInfo: userInfo) }
    }

    package func serve(_ host: any ActorHost, as number: UInt64) {
        heldHost = host
        serverNumber = number
    }

    package func call(_ server: any RemoteServer) { heldServer = server }

    /// Where the actors of its names are; nil on a server, and once nobody holds the client any more.
    package var server: (any RemoteServer)? { heldServer }

    /// The way to an actor that does not live here, or may go; nil when there is none.
    package func server(of id: ActorID) -> (any RemoteServer)? {
        switch id.route {
        case .server(let server): server
        case .client, .given: nil
        case .unknown: serverNumber == 0 ? heldServer : heldHost?.way(to: id.id)
        }
    }

    /// Nil in a client.
    package var host: (any ActorHost)? { serverNumber == 0 ? nil : heldHost }

    /// Why an actor that does not live here cannot be reached.
    func unreachable(_ id: ActorID) -> TrebuchetError {
        if case .client = id.route {
            let text =
                "actor '\(id)' lives in a client, whose states and events cannot be observed: have the client call the server when "
                + "they change, or call it"
            return TrebuchetError(.methodNotFound, text)
        }
        guard serverNumber == 0 else {
            if case .given = id.route {
                let text =
                    "a reference to '\(id)' that came in a message leads to an actor that is here, and none is: have its name sent, "
                    + "look whether the caller may use it, and find it with actorSystem.resolve(_:id:)"
                return TrebuchetError(.unavailable, text)
            }
            return TrebuchetError(.unavailable, "actor '\(id)' cannot be reached: the server has shut down")
        }
        let text =
            "the client of actor '\(id)' is gone: hold it, or make references with client.resolve(_:id:), which hold it themselves"
        return TrebuchetError(.unavailable, text)
    }

    package var shards: [SystemShard] { builtShards }

    /// What all records of an actor of this system share.
    package func life(of id: ActorID) -> ActorLife { locals.life(of: ActorName(id.id)) ?? ActorLife() }

    /// What decoders need to make references of actors' names.
    package var userInfo: [CodingUserInfoKey: any Sendable] { [.actorSystemKey: self] }

    package func shard(of reactor: (any EventLoop)?) -> SystemShard? {
        guard let reactor else { return nil }
        return builtShards.first { $0.reactor === reactor }
    }

    // MARK: Life of actors

    public func assignID<Act: DistributedActor>(_ type: Act.Type) -> ActorID where Act.ID == ActorID {
        let home = shard(of: Self.chosenHome)?.reactor ?? nextHome
        // Unguessable: whoever has the name can call the actor.
        var random = SystemRandomNumberGenerator()
        let name = [random.next(), random.next()].map { String($0 as UInt64, radix: 36) }.joined()
        return ActorID("\(type)-\(name)", home: home, server: serverNumber)
    }

    private var nextHome: any EventLoop {
        let index = nextShard.wrappingAdd(1, ordering: .relaxed).oldValue
        return builtShards[Int(UInt(bitPattern: index) % UInt(builtShards.count))].reactor
    }

    @TaskLocal private static var chosenHome: (any EventLoop)?

    /// Has actors that are made in a closure live on the reactor of another one that lives here: what that changes in them without
    /// waiting leaves before its answers do.
    package func living<Made>(with actor: ActorID, _ make: () throws -> Made) rethrows -> Made {
        try Self.$chosenHome.withValue(actor.home) { try make() }
    }

    /// Has actors that are made in a closure live on a loop, where it is one of this system's.
    package static func living<Made>(on loop: (any EventLoop)?, _ make: () async throws -> Made) async rethrows -> Made
    {
        try await $chosenHome.withValue(loop) { try await make() }
    }

    public func actorReady<Act: DistributedActor>(_ actor: Act) where Act.ID == ActorID {
        locals.add(actor)
    }

    public func resignID(_ id: ActorID) {
        if id.livesInClient { heldServer?.handed.remove(ActorName(id.id)) }
        locals.remove(ActorName(id.id))
    }

    /// The actor of this name when it lives here; nil makes the caller get a reference to a remote one.
    public func resolve<Act: DistributedActor>(id: ActorID, as type: Act.Type) throws -> Act? where Act.ID == ActorID {
        // Whatever a client has called its actor, it is none of the actors here.
        if case .client = id.route { return nil }
        tellReach(id)
        let name = ActorName(id.id)
        // One that was given is called on behalf of the caller, who may not be who may call others by name.
        if case .given = id.route {} else if heldHost?.mayGo(name) == true { return nil }
        let found = locals.actor(name) ?? heldHost?.actor(name)
        guard let found else { return nil }
        guard let actor = found as? Act else {
            throw TrebuchetError(.invalidArguments, "actor '\(id)' is a \(Swift.type(of: found)), not a \(type)")
        }
        return actor
    }

    /// The shard of the reactor that an actor lives on; nil with `executor: .concurrent` or an executor of its own, whatever its
    /// name says.
    func home<A: TrebuchetActor>(of actor: A) -> SystemShard? {
        guard A.dispatch.executor == .reactor, let shard = shard(of: actor.id.home),
            Self.isSame(actor.unownedExecutor, shard.reactor.asUnownedSerialExecutor())
        else { return nil }
        return shard
    }

    private static func isSame(_ a: UnownedSerialExecutor, _ b: UnownedSerialExecutor) -> Bool {
        // An executor is two words: the object, and what it is.
        unsafeBitCast(a, to: (Int, Int).self).0 == unsafeBitCast(b, to: (Int, Int).self).0
    }

    /// A reference to an actor of this name. In an actor of a server:
    ///
    ///     let match = try actorSystem.resolve(Match.self, id: "matches/7")
    ///     let score = try await match.score()
    ///
    /// At a server: one that is exposed and there, and does not go by itself, is given itself. Any other, made on demand, with an
    /// `idle` time or on one node of a cluster, is made and found when it is called or observed, wherever that is. Those calls are the server's
    /// (`Caller.isServer`): no `authorize` and no rate is asked, and deadlines, repeats of `@Idempotent` calls and errors are as for clients.
    /// At a client: the same as `TrebuchetClient.resolve(_:id:)`, but it does not keep the client connected.
    ///
    /// It is not asked whether the actor exists; a call would tell.
    ///
    /// - Throws: `TrebuchetError` with `invalidArguments` when an actor of another type has the name here.
    public func resolve<A: DistributedActor>(_ type: A.Type, id: String) throws -> A
    where A.ActorSystem == TrebuchetActorSystem {
        try A.resolve(id: TrebuchetActorID(id), using: self)
    }

    // MARK: Calls of remote actors

    public func makeInvocationEncoder() -> CallInvocationEncoder { CallInvocationEncoder(coder: takeCoder()) }

    public func remoteCall<Act, Err, Res>(
        on actor: Act, target: RemoteCallTarget, invocation: inout CallInvocationEncoder, throwing: Err.Type,
        returning: Res.Type
    ) async throws -> Res where Act: DistributedActor, Act.ID == ActorID, Err: Error, Res: Codable & Sendable {
        let reply = try await call(actor, target, &invocation)
        guard let bytes = reply else {
            throw TrebuchetError(.internal, "the answer has no result, but \(target) returns \(Res.self)")
        }
        let coder = takeCoder()
        defer { giveBack(coder) }
        do {
            return try actor.id.asGiven { try bytes.withUnsafeBytes { try coder.decode(Res.self, from: $0) } }
        } catch {
            throw TrebuchetError(.internal, "the result of \(target) does not decode: \(describe(error))")
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
        tellReach(actor.id)
        if case .client(let actorThere) = actor.id.route {
            return try await actorThere.call(target, of: Act.self, &invocation, in: self)
        }
        guard let server = server(of: actor.id) else { throw unreachable(actor.id) }
        let method = server.methods.method(target, of: Act.self)
        let request = invocation.finish(on: Act.self, method)
        invocation.giveBackCoder(to: self)
        do {
            return try await server.call(
                actorID: actor.id.id, target: method.name, request, isIdempotent: method.isIdempotent)
        } catch let error as TrebuchetError where error.code == .application {
            throw server.errors.typed(error, thrownBy: Act.self)
        }
    }

    /// Tells who listens for calls which other actors a method needs.
    private func tellReach(_ id: ActorID) {
        guard serverNumber != 0, let events = builtShards.first?.events, events.wants(.calls) else { return }
        let call = ServerEvents.currentCall
        if call != 0 { events.tell(.callReached(call: call, actor: id.id)) }
    }

    // MARK: References

    /// Why the name of an actor is not to be sent to the other side: it would be taken for the name of another actor there, or
    /// for none. Nil when it may be, and when that cannot be known.
    func refusal(ofSending id: ActorID) -> TrebuchetError? {
        let code: TrebuchetError.Code = serverNumber == 0 ? .invalidArguments : .internal
        let own = heldServer
        if id.livesInClient {
            if let own, knows(id) { return own.handed.refusal(of: id) }
            return TrebuchetError(
                code,
                "actor '\(id)' lives in another client: a reference to it can be sent with calls over that client alone, since "
                    + "nobody but its server can call it")
        }
        if case .client = id.route {
            return TrebuchetError(
                code,
                "actor '\(id)' lives in a client, and only the server that has the reference can call it: it is not sent on, and "
                    + "is no part of a state. Have the server call it")
        }
        if let remote = id.remote, let own, remote === own || remote.reachesSameAddress(as: own) {
            return nil
        }
        let receiver = own?.serverNumber ?? serverNumber
        let home = id.remote?.serverNumber ?? id.server
        guard receiver != 0, home != 0, receiver != home else { return nil }
        let place = id.remote.map { "at \($0.peerName)" } ?? "at another server of this process"
        return TrebuchetError(
            code,
            "actor '\(id)' lives \(place), and a reference to it means nothing elsewhere: send what the other side needs to "
                + "find it, or call it here")
    }

    /// Whether the actor lives in this very system.
    private func knows(_ id: ActorID) -> Bool { locals.has(ActorName(id.id)) }

    /// From now on the server of this client may call an actor of it.
    func handOver(_ id: ActorID) { heldServer?.handed.add(ActorName(id.id)) }

    // MARK: Coders

    /// A coder that the caller has for itself until it gives it back.
    package func takeCoder() -> ValueCoder {
        coders.withLock { $0?.popLast() } ?? ValueCoder(userInfo: userInfo)
    }

    package func giveBack(_ coder: ValueCoder) {
        coders.withLock { if $0?.count ?? 16 < 16 { $0?.append(coder) } }
    }

    /// The server or client is gone: what refers to the system in a circle is let go.
    package func takeApart() {
        let unused = coders.withLock { coders in
            defer { coders = nil }
            return coders
        }
        _ = unused
        for shard in shards { shard.reactor.run { shard.takeApart() } }
    }
}

package import Distributed

/// What the actor system of a server asks of it.
package protocol ActorHost: AnyObject, Sendable {
    /// An exposed actor that is there.
    func actor(_ name: ActorName) -> (any DistributedActor)?
    /// Whether the actor of this name that is here now may go while others of that name come, here or at another node: then it is
    /// reached by name alone.
    func mayGo(_ name: ActorName) -> Bool
    /// The way to an actor of this name, here or at another node; nil once the server is gone.
    func way(to name: String) -> (any RemoteServer)?
    /// A reference to an actor that lives in the client whose message is being decoded.
    func clientActor(_ name: String) throws(TrebuchetError) -> any ClientActor
}

/// An actor that lives in a client, as its server has it.
package protocol ClientActor: AnyObject, Sendable, CustomStringConvertible {
    /// Calls a method of the actor, and gives the result in JSON.
    func call<Act: DistributedActor>(
        _ target: RemoteCallTarget, of type: Act.Type, _ invocation: inout CallInvocationEncoder,
        in system: TrebuchetActorSystem
    ) async throws -> [UInt8]?
    /// Decodes what the actor has answered: references in it are to actors of the same client.
    func asGiven<Result>(_ body: () throws -> Result) rethrows -> Result
}

/// Where an actor system finds the actors that live in it, by the names that it gave them. It holds none of them.
package protocol ActorRegistry: AnyObject, Sendable {
    func add<Act: DistributedActor>(_ actor: Act) where Act.ID == TrebuchetActorID
    func remove(_ name: ActorName)
    func has(_ name: ActorName) -> Bool
    /// Nil as well for one that is gone.
    func actor(_ name: ActorName) -> (any DistributedActor)?
    /// What all records of an actor share.
    func life(of name: ActorName) -> ActorLife?
}

package import Distributed

/// The part of a server that its actor system uses.
package protocol ActorHost: AnyObject, Sendable {
    /// Returns the exposed actor with this name, if an instance is in memory.
    func actor(_ name: ActorName) -> (any DistributedActor)?
    /// Returns whether the instance with this name can be deactivated and activated again, on this node or another one. References to
    /// such an actor hold only its name.
    func mayDeactivate(_ name: ActorName) -> Bool
    /// Returns the route to an actor with this name, on this node or another one; nil after the server was released.
    func route(to name: String) -> (any RemoteServer)?
    /// Returns a reference to an actor that lives in the client whose message is being decoded.
    func clientActor(_ name: String) throws(TrebuchetError) -> any ClientActor
}

/// The server side of an actor that lives in a client.
package protocol ClientActor: AnyObject, Sendable, CustomStringConvertible {
    /// Calls a method of the actor and returns the result as JSON.
    func call<Act: DistributedActor>(
        _ target: RemoteCallTarget, of type: Act.Type, _ invocation: inout CallInvocationEncoder,
        in system: TrebuchetActorSystem
    ) async throws -> [UInt8]?
    /// Decodes a response of the actor. References in it belong to actors of the same client.
    func withReferenceScope<Result>(_ body: () throws -> Result) rethrows -> Result
}

/// The actors that live in an actor system, by the names that the system assigned to them. The registry does not retain the
/// actors.
package protocol ActorRegistry: AnyObject, Sendable {
    func register<Act: DistributedActor>(_ actor: Act) where Act.ID == TrebuchetActorID
    func remove(_ name: ActorName)
    func containsActor(_ name: ActorName) -> Bool
    /// Returns the actor with this name; nil also after the actor was freed.
    func actor(_ name: ActorName) -> (any DistributedActor)?
    /// Returns the instance that all records of an actor share.
    func instance(of name: ActorName) -> ActorInstance?
    /// Returns the alarms of an actor; nil for one that cannot have any.
    func alarms(of id: TrebuchetActorID) -> PersistedAlarms?
}

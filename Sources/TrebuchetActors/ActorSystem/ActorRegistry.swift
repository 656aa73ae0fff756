package import Distributed

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

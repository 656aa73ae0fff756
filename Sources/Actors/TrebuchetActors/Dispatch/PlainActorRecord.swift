internal import Bytes
internal import Distributed
internal import TrebuchetWire

/// The record of a distributed actor that is not marked `@Trebuchet`. Its methods are looked up by their mangled names in the
/// program (`executeDistributedTarget`), which is slower but works for every distributed actor.
final class PlainActorRecord<A: DistributedActor>: ActorRecord, @unchecked Sendable
where A.ID == TrebuchetActorID {
    private let instance: A

    init(_ actor: A, name: String, instance: ActorInstance) {
        self.instance = actor
        super.init(name: name, type: ActorTypes.any(A.self), home: nil, actorInstance: instance, exposed: nil)
    }

    override var actor: (any DistributedActor)? { instance }

    override func operation(
        _ method: ProgramMethods.Method, _ decoder: CallInvocationDecoder, in system: TrebuchetActorSystem
    ) throws -> CallOperation {
        let actor = instance
        return { _ in try await system.execute(method, on: actor, decoder) }
    }

    override func executeStreamingTarget(_ stream: String, _ body: @escaping @Sendable (StreamProducer?) -> Void) {
        body(nil)
    }

    override func checkIdle(discarding: Bool, _ body: @escaping @Sendable (Bool) -> Void) { body(discarding) }
}

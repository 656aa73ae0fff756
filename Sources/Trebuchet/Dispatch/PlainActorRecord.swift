internal import Bytes
internal import Distributed
internal import TrebuchetWire

/// The record of a distributed actor that is not marked `@Trebuchet`: its methods are found by their mangled names in
/// the program (`executeDistributedTarget`), which is slower and works for every distributed actor.
final class PlainActorRecord<A: DistributedActor>: ActorRecord, @unchecked Sendable where A.ID == TrebuchetActorID {
    private let instance: A

    init(_ actor: A, name: String) {
        instance = actor
        super.init(name: name, home: nil, methods: [], streamNames: [], exposed: nil)
    }

    override var actor: (any DistributedActor)? { instance }

    override func executeTarget(
        _ target: String, _ decoder: CallInvocationDecoder, in system: TrebuchetActorSystem
    ) -> CallOperation? {
        system.operation(of: target, on: instance, decoder)
    }

    override func executeStreamingTarget(_ stream: String, _ body: @escaping @Sendable ((any AnyStateSource)?) -> Void)
    {
        body(nil)
    }
}

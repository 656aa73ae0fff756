internal import Bytes
internal import Distributed
internal import TrebuchetWire

/// The record of a distributed actor that is not marked `@Trebuchet`: its methods are found by their mangled names in
/// the program (`executeDistributedTarget`), which is slower and works for every distributed actor.
final class PlainActorRecord<A: DistributedActor>: ActorRecord, @unchecked Sendable where A.ID == TrebuchetActorID {
    private let instance: A
    private let system: TrebuchetActorSystem

    init(_ actor: A, name: String, system: TrebuchetActorSystem) {
        instance = actor
        self.system = system
        super.init(name: name, home: nil, methods: [], streamNames: [], exposed: nil)
    }

    override var actor: (any DistributedActor)? { instance }

    override func executeTarget(_ target: String, _ decoder: CallInvocationDecoder) -> CallOperation? {
        guard target.hasPrefix("$s") else { return nil }
        let actor = instance
        let system = system
        return {
            var decoder = decoder
            let handler = CallResultHandler()
            try await system.executeDistributedTarget(
                on: actor, target: RemoteCallTarget(target), invocationDecoder: &decoder, handler: handler)
            return try handler.outcome()
        }
    }

    override func withSource(of stream: String, _ body: @escaping @Sendable ((any AnyStateSource)?) -> Void) {
        body(nil)
    }
}

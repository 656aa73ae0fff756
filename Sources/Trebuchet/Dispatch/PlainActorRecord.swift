internal import Bytes
internal import Distributed
internal import TrebuchetWire

/// The record of a distributed actor that is not marked `@Trebuchet`: its methods are found by their mangled names in
/// the program (`executeDistributedTarget`), which is slower and works for every distributed actor.
final class PlainActorRecord<A: DistributedActor>: ActorRecord, @unchecked Sendable
where A.ActorSystem == TrebuchetActorSystem {
    private let instance: A

    init(_ actor: A, name: String) {
        instance = actor
        super.init(name: name, home: nil, methods: [], streamNames: [])
    }

    override var actor: (any DistributedActor)? { instance }

    override func executeTarget(_ target: String, _ decoder: CallInvocationDecoder) -> CallOperation? {
        guard target.hasPrefix("$s") else { return nil }
        let actor = instance
        return {
            var decoder = decoder
            let handler = CallResultHandler()
            try await actor.actorSystem.executeDistributedTarget(
                on: actor, target: RemoteCallTarget(target), invocationDecoder: &decoder, handler: handler)
            return try handler.outcome()
        }
    }

    override func withSource(of stream: String, _ body: @escaping @Sendable ((any AnyStateSource)?) -> Void) {
        body(nil)
    }
}

internal import Distributed

/// A server's reference to a client actor, shared by all its users. It counts in the client's quota while it exists.
final class ClientActorReference: ClientActor {
    let client: ClientActorHost
    /// The name in the client.
    let name: ActorName
    let reservation: QuotaReservation

    init(_ name: ActorName, of client: ClientActorHost, _ reservation: QuotaReservation) {
        self.client = client
        self.name = name
        self.reservation = reservation
    }

    deinit { client.didRelease(name) }

    /// Includes the client's number, since two clients may use the same actor name.
    var description: String { "\(name)@client\(client.number)" }

    /// Calls a method of the actor and returns the result in JSON.
    func call<Act: DistributedActor>(
        _ target: RemoteCallTarget, of type: Act.Type, _ invocation: inout CallInvocationEncoder,
        in system: TrebuchetActorSystem
    ) async throws -> [UInt8]? {
        let clients = client.clients
        let method = try clients.methods.method(target, of: type)
        if method.isIdempotent {
            throw TrebuchetError(
                .methodNotFound,
                "\(method.name) is @Idempotent, but actor '\(self)' lives in a client, to which calls are not repeated: remove "
                    + "the attribute from methods that a server calls at a client")
        }
        let request = invocation.finish(on: type, method)
        invocation.releaseCoder(to: system)
        do {
            return try await client.call(name.text, method.name, request)
        } catch let error as TrebuchetError where error.code == .application {
            throw clients.errors.typed(error, thrownBy: type)
        }
    }

    func withReferenceScope<Result>(_ body: () throws -> Result) rethrows -> Result {
        try ClientActorHost.$current.withValue(client, operation: body)
    }
}

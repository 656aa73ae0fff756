internal import Distributed

/// A server's reference to an actor that lives in a client, the same for all who have it: it counts in the client's share as
/// long as somebody does.
final class ClientActorReference: ClientActor {
    let client: HostingClient
    /// As the client knows it.
    let name: ActorName
    let stake: Stake

    init(_ name: ActorName, of client: HostingClient, _ stake: Stake) {
        self.client = client
        self.name = name
        self.stake = stake
    }

    deinit { client.didRelease(name) }

    /// Two clients may have called their actors the same.
    var description: String { "\(name)@client\(client.number)" }

    /// Calls a method of the actor, and gives the result in JSON.
    func call<Act: DistributedActor>(
        _ target: RemoteCallTarget, of type: Act.Type, _ invocation: inout CallInvocationEncoder,
        in system: TrebuchetActorSystem
    ) async throws -> [UInt8]? {
        let clients = client.clients
        let method = clients.methods.method(target, of: type)
        if method.isIdempotent {
            throw TrebuchetError(
                .methodNotFound,
                "\(method.name) is @Idempotent, and actor '\(self)' lives in a client, to which no call is repeated: a server "
                    + "calls methods of clients that are not marked so")
        }
        let request = invocation.finish(on: type, method)
        invocation.giveBackCoder(to: system)
        do {
            return try await client.call(name.text, method.name, request)
        } catch let error as TrebuchetError where error.code == .application {
            throw clients.errors.typed(error, thrownBy: type)
        }
    }

    func asGiven<Result>(_ body: () throws -> Result) rethrows -> Result {
        try HostingClient.$current.withValue(client, operation: body)
    }
}

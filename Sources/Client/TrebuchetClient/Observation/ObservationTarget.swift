internal import Distributed
internal import Relays
internal import TrebuchetActors

/// An observed actor with its client.
struct ObservationTarget<A: DistributedActor>: Sendable where A.ActorSystem == TrebuchetActorSystem {
    /// The actor, or an error if another actor in this process has the name.
    let actor: Result<A, TrebuchetError>
    /// The client, retained because an unreferenced client closes its connection. Nil if an actor was given.
    let client: TrebuchetClient?
    /// The connection states; for an actor in this process always connected.
    let connectionStates: StateRelay<TrebuchetClient.ConnectionState>

    init(_ actor: A) {
        self.actor = .success(actor)
        client = nil
        let server = actor.id.home == nil ? actor.actorSystem.server(of: actor.id) : nil
        let core = (server as? ClientConnectionLease)?.core
        connectionStates = core?.connection.states ?? StateRelay(.connected)
    }

    init(_ id: String, at client: TrebuchetClient) {
        do {
            actor = .success(try client.resolve(A.self, id: id))
        } catch let error as TrebuchetError {
            actor = .failure(error)
        } catch {
            actor = .failure(TrebuchetError(.internal, describe(error)))
        }
        self.client = client
        connectionStates = client.connectionState
    }
}

extension StateRelay<TrebuchetClient.ConnectionState> {
    /// Waits until a client that has given up is asked to connect again. Returns false if a stream with this `error` ended for
    /// another reason, or if there will be no connection.
    func waitsForReconnect(after error: TrebuchetError) async -> Bool {
        guard error.code == .unavailable else { return false }
        switch currentValue {
        case .disconnected, .connecting: break
        // The connection was not the reason; an immediate retry would loop endlessly.
        case .connected, .draining, .closed: return false
        }
        for await state in stream {
            switch state {
            case .disconnected: continue
            case .connecting, .connected, .draining: return true
            case .closed: return false
            }
        }
        return false
    }
}

internal import Distributed
internal import Relays
internal import TrebuchetActors

/// An actor that is observed, and how it is reached.
struct ActorSource<A: DistributedActor>: Sendable where A.ActorSystem == TrebuchetActorSystem {
    /// An error when another actor in this process has the name.
    let actor: Result<A, TrebuchetError>
    /// Held, because a client that nobody holds closes its connection. Nil for an actor that was given as such.
    let client: TrebuchetClient?
    /// Of an actor in this process, always connected.
    let connectionStates: StateRelay<TrebuchetClient.ConnectionState>

    init(_ actor: A) {
        self.actor = .success(actor)
        client = nil
        let server = actor.id.home == nil ? actor.actorSystem.server(of: actor.id) : nil
        let core = (server as? ClientHold)?.core
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
    /// Waits until a client that has given up is asked to connect again. False when a stream that ended with `error` did
    /// not end because of that, or there will be no connection any more.
    func comesBack(after error: TrebuchetError) async -> Bool {
        guard error.code == .unavailable else { return false }
        switch currentValue {
        case .disconnected, .connecting: break
        // It was not the connection: asking again at once would go on without end.
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

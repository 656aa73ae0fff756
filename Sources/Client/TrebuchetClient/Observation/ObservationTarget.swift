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
    /// The longest delay that a server can demand before a stream is requested again, as in the web client.
    private static var maximumDelay: Duration { .seconds(600) }

    /// Waits for the time that the server demands, or until a client that has given up is asked to connect again. Returns false if a
    /// stream with this `error` ended for another reason, if there will be no connection, or if the task is cancelled.
    func waitsForRetry(after error: TrebuchetError) async -> Bool {
        guard error.code == .unavailable || error.code == .rateLimited else { return false }
        switch currentValue {
        case .disconnected, .connecting: guard error.code == .unavailable else { return false }
        case .closed: return false
        case .connected, .draining:
            // The connection was not the reason; an immediate retry would loop endlessly.
            guard let delay = error.retryAfter, delay > .zero else { return false }
            // Clients whose streams have ended together do not return together.
            let random = Double.random(in: 1..<2)
            do { try await Task.sleep(for: min(delay, Self.maximumDelay) * random) } catch { return false }
            return currentValue != .closed
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

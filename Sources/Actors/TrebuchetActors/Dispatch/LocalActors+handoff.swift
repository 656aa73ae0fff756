internal import Distributed
internal import Transports

/// An actor that passes handoff state to its next owner node in a cluster.
package protocol HandoffActor: TrebuchetActor {
    /// The namespace of its handoff state.
    static var handoffNamespace: String { get }
    /// Restores the handoff state of the previous owner. Runs before the first call.
    ///
    /// - Throws: An error if `values` is not valid handoff state.
    func restoreHandoffState(from values: [String: [UInt8]], _ handoffState: HandoffState) throws
}

extension LocalActors {
    /// Restores the handoff state of an actor. Without a per-actor store, no other node can own the actor, and nothing is
    /// restored.
    func restoreHandoffState<A: HandoffActor>(_ actor: A, name: String, in system: TrebuchetActorSystem) async throws {
        guard let home = system.home(of: actor), let writer = writer(on: home, isClustered: true),
            let store = writer.partitions
        else { return }
        await retirements.wait(for: name)
        let values: [String: [UInt8]]
        let ownership = writer.ownership(of: name)
        do throws(StateStoreError) {
            try writer.claim.acquire()
            values = try await store.values(of: name, in: A.handoffNamespace)
        } catch {
            throw error.forCallers(
                "the handoff state of actor '\(name)' cannot be loaded: \(error.message)", isClustered: true)
        }
        let outcome: Result<PersistedStates, any Error> = await home.reactor.perform {
            // The actor's executor is this reactor.
            actor.assumeIsolated { actor in
                Result {
                    let states = PersistedStates(name: name, home: home, writer: writer, ownership: ownership)
                    let handoffState = HandoffState(A.handoffNamespace, of: name, by: states)
                    states.handoffState = handoffState
                    let values = values.map { (HandoffState.name($0, of: name), $1) }
                    try actor.restoreHandoffState(from: Dictionary(values) { first, _ in first }, handoffState)
                    return states
                }
            }
        }
        do {
            setPersistedStates(try outcome.get(), of: actor.id)
        } catch {
            let text = writer.disclosure.disclose(error, of: "reading the idempotency records of actor '\(name)'")
                .message
            throw TrebuchetError(.internal, "the idempotency records of actor '\(name)' cannot be read: \(text)")
        }
    }
}

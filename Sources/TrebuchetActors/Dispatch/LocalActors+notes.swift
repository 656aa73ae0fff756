internal import Distributed
internal import Transports

/// An actor that notes what its next owner is to know, where it lives on one node of several.
package protocol NotingActor: TrebuchetActor {
    /// What its notes have to themselves.
    static var notesNamespace: String { get }
    /// Goes on from what the owner before has noted. Before anybody calls it.
    ///
    /// - Throws: when that is not what it has noted.
    func goOn(from noted: [String: [UInt8]], _ notes: ActorNotes) throws
}

extension LocalActors {
    /// Has an actor go on from what its owner before has noted. Where no other node ever owns it nothing is noted.
    func goOn<A: NotingActor>(_ actor: A, name: String, in system: TrebuchetActorSystem) async throws {
        guard let home = system.home(of: actor), let writer = writer(on: home, isPlaced: true),
            let store = writer.partitions
        else { return }
        await retirements.wait(for: name)
        let noted: [String: [UInt8]]
        let ownership = writer.ownership(of: name)
        do throws(StateStoreError) {
            try writer.claim.take()
            noted = try await store.values(of: name, in: A.notesNamespace)
        } catch {
            throw TrebuchetError(.unavailable, "what is kept of actor '\(name)' cannot be loaded: \(error.message)")
        }
        let outcome: Result<PersistedStates, any Error> = await home.reactor.perform {
            // The actor's executor is this reactor.
            actor.assumeIsolated { actor in
                Result {
                    let states = PersistedStates(name: name, home: home, writer: writer, ownership: ownership)
                    let notes = ActorNotes(A.notesNamespace, of: name, by: states)
                    states.notes = notes
                    let values = noted.map { (ActorNotes.name($0, of: name), $1) }
                    try actor.goOn(from: Dictionary(values) { first, _ in first }, notes)
                    return states
                }
            }
        }
        do {
            setPersistedStates(try outcome.get(), of: actor.id)
        } catch {
            let text = writer.disclosure.tell(error, of: "reading what is kept of actor '\(name)'").message
            throw TrebuchetError(.internal, "what is kept of actor '\(name)' cannot be read: \(text)")
        }
    }
}

import NodeSupport
import Testing
import Trebuchet
import TrebuchetClient
import TrebuchetCluster

/// Counts its activations.
@Trebuchet
private distributed actor Clerk {
    @StreamedState(persisted: true) var activations: Int = 0

    func activate() async { activations += 1 }

    distributed func count() -> Int { activations }
}

/// `activate()` of actors with `placement: .cluster`.
@Suite(.timeLimit(.minutes(5))) struct ActorLifecycleTests {
    private func nodes() throws -> [Node] {
        let engine = MemoryEngine()
        return try ["a", "b"].map { name in
            try Node(name, engine, store: MemoryStore()) { server in
                let system = server.actorSystem
                server.expose(Clerk.self, as: "clerks/*", placement: .cluster) { _ in Clerk(actorSystem: system) }
            }
        }
    }

    @Test("activate() runs at each owner node, after the state is loaded and before the first call")
    func activation() async throws {
        let nodes = try nodes()
        try await Node.with(nodes) {
            let client = try await nodes[0].client()
            let names = nodes[1].names("clerks", 3)
            for name in names { #expect(try await client.resolve(Clerk.self, id: name).count() == 1) }
            try await nodes[1].kill()
            #expect(await Node.ownAll([nodes[0]]))
            for name in names { #expect(try await client.resolve(Clerk.self, id: name).count() == 2) }
        }
    }
}

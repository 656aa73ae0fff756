import CAllocationCount
import Testing
import Trebuchet
import TrebuchetTesting

/// The allocations of the server's thread for one call. The numbers only go down; Docs/Internals/Performance.md has them.
@Suite(.enabled(if: allocations_are_counted() != 0), .timeLimit(.minutes(5)), .serialized) struct AllocationTests {
    /// Allocations per call on the server's reactor, once everything is warm.
    ///
    /// The actor itself reports the count. All calls of a round arrive in one read and fit into the connection's share of a turn, in
    /// debug builds too. So nothing else runs between the first and the last call, whatever other tests do on the same reactor.
    private func allocations(_ target: String, _ arguments: String, most: Int) async throws -> Double {
        try await withTestServer(reactors: 1) { server in
            await server.expose(SizedStateActor(actorSystem: server.actorSystem), as: "board")
        } body: { _, server in
            let peer = try await RawPeer.connect(try #require(server.address))
            func allocations(during calls: Int) async throws -> Int {
                await peer.together {
                    peer.invoke("c", "board", "allocations()")
                    for _ in 0..<calls { peer.invoke("c", "board", target, arguments) }
                    peer.invoke("c", "board", "allocations()")
                }
                var results: [Int?] = []
                for _ in 0..<calls + 2 { results.append(try await peer.next()?.payload.result) }
                return try #require(results.last ?? nil) - #require(results.first ?? nil)
            }
            for _ in 0..<10 { _ = try await allocations(during: 4) }
            // The minimum of each: the network may split a write, and a blocked thread may exceed its turn and defer the rest.
            var (few, many) = (Int.max, Int.max)
            for round in 1...500 {
                few = min(few, try await allocations(during: 1))
                many = min(many, try await allocations(during: 4))
                // A busy machine needs more rounds until one is undisturbed.
                if round > 20, many - few <= 3 * most { break }
            }
            peer.close()
            return Double(many - few) / 3
        }
    }

    @Test("an allocation is counted")
    func counts() {
        let before = allocation_count()
        withExtendedLifetime([UInt8](repeating: 1, count: 10_000)) {}
        let memory = UnsafeMutableRawPointer.allocate(byteCount: 10_000, alignment: 8)
        memory.deallocate()
        #expect(allocation_count() > before)
    }

    @Test("a call with a number and one with a string allocate no more often than recorded")
    func calls() async throws {
        let number = try await allocations("same(_:)", "[7]", most: 2)
        let text = try await allocations("length(of:)", #"["a string of more than fifteen bytes"]"#, most: 2)
        print("allocations per call: \(number) with a number, \(text) with a string")
        #expect(number <= 2)
        #expect(text <= 2)
    }
}

import NodeSupport
import Deltas
import TestSupport
import Testing
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// Actors of a cluster whose states are larger than a log entry.
@Suite(.timeLimit(.minutes(5))) struct LargeActorTests {
    @Test("a state may grow beyond the size of an entry, and its next owner has all of it")
    func grows() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let client = try await nodes[0].client()
            let shelf = try client.resolve(Shelf.self, id: #require(nodes[1].names("shelves").first))
            let other = try client.resolve(Shelf.self, id: #require(nodes[0].names("shelves").first))
            for number in 1...60 { #expect(try await shelf.put(50_000) == number) }
            // In a single write.
            #expect(try await other.put(900_000, times: 3) == 3)
            try await nodes[1].kill()
            #expect(try await shelf.put(1) == 61)
            #expect(try await shelf.bytes() == 60 * 50_000 + 1)
            await nodes[0].server.shutdown()
        }
    }

    @Test("a write in parts takes effect only with its last part", arguments: [0, 1, 2])
    func parts(missing: Int) async throws {
        let engine = MemoryEngine()
        let name = "shelves/x"
        let node = try ClusterNode(name: "a")
        let slot = ClusterSlot(of: name)
        let lease = try #require(
            try await engine.acquire(slot, for: node, duration: .seconds(60)).lease)
        let store = EngineStore(engine) { _ in lease }
        let key = StateKey("n", "k", partition: name)
        try await store.write([.put([1], key)])
        // The owner dies before that part.
        let entry = ActorLogEntry.bytes(of: [.put([UInt8](repeating: 2, count: 1_200_000), key)])
        let parts = SplitLogEntry.split(entry)
        #expect(parts.count == 3)
        let reading = try await engine.read(ClusterLog(name), after: nil)
        var top = try #require(reading.entries.last?.position.offset)
        for part in parts.prefix(missing) {
            #expect(
                try await engine.append(LogAppend(part, expectedHead: top), to: ClusterLog(name), lease: lease)
                    == .accepted(top + 1))
            top += 1
        }
        let next = EngineStore(engine) { _ in lease }
        #expect(try await next.get(key) == [1])
        try await next.put([UInt8](repeating: 3, count: 1_200_000), key)
        #expect(try await EngineStore(engine) { _ in lease }.get(key) == [UInt8](repeating: 3, count: 1_200_000))
    }

    @Test("a write in parts is complete when one part was written but not confirmed", arguments: [0, 1, 2])
    func unconfirmed(lost: Int) async throws {
        let engine = MemoryEngine()
        let (engineRoute, name) = (FaultyEngine(engine), "shelves/x")
        let node = try ClusterNode(name: "a")
        let lease = try #require(
            try await engine.acquire(
                ClusterSlot(of: name), for: node, duration: .seconds(60)
            ).lease)
        engineRoute.set { $0.confirms = true }
        let key = StateKey("n", "k", partition: name)
        let store = EngineStore(engineRoute) { _ in lease }
        try await store.write([.put([1], key)])
        // The responses of all parts up to that one are lost; the following entries confirm them.
        engineRoute.set { $0.losesNextAnswers = lost + 1 }
        let large = [UInt8](repeating: 2, count: 1_200_000)
        try await store.put(large, key)
        #expect(try await EngineStore(engine) { _ in lease }.get(key) == large)
        try await store.put([3], key)
        #expect(try await EngineStore(engine) { _ in lease }.get(key) == [3])
    }

    @Test("parts are joined in order only")
    func splitting() {
        let entry = [UInt8]((0..<1_600_000).map { UInt8(truncatingIfNeeded: $0 % 251) })
        let parts = SplitLogEntry.split([1] + entry)
        #expect(parts.allSatisfy { $0.count <= SplitLogEntry.partBytes + 9 } && parts.count == 4)
        var gathering = SplitLogEntry()
        #expect(parts.dropLast().allSatisfy { gathering.append($0) == nil })
        #expect(gathering.append(parts[3]) == [1] + entry)
        // A part is missing, or repeated, or a part of another entry is in between.
        for wrong in [[0, 1, 3], [0, 1, 1, 2, 3], [1, 2, 3], [3]] {
            gathering = SplitLogEntry()
            #expect(wrong.allSatisfy { gathering.append(parts[$0]) == nil }, "\(wrong)")
        }
        gathering = SplitLogEntry()
        #expect(
            gathering.append(parts[0]) == nil && gathering.append([1, 2]) == [1, 2] && gathering.append(parts[1]) == nil
        )
        #expect(SplitLogEntry.split([1, 2]) == [[1, 2]])
    }
}

/// A growing state.
@Trebuchet
distributed actor Shelf {
    struct Box: Codable, Sendable, Identifiable {
        var id: Int
        var contents: String
    }

    @StreamedState(persisted: true) var boxes: KeyedCollection<Box> = []

    distributed func put(_ bytes: Int) -> Int { put(bytes, times: 1) }
    distributed func put(_ bytes: Int, times: Int) -> Int {
        for _ in 0..<times {
            boxes.append(Box(id: boxes.count, contents: String(repeating: "x", count: bytes)))
        }
        return boxes.count
    }
    distributed func bytes() -> Int { boxes.reduce(0) { $0 + $1.contents.utf8.count } }
}

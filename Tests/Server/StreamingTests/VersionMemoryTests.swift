import Bytes
import Networking
import Testing

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Suite(.timeLimit(.minutes(5))) struct VersionMemoryTests {
    private static let reactor = FanOutRig.newReactor()
    private var reactor: Reactor { Self.reactor }

    @Test("a version needed by readers is counted once, however many they are, until the last one has received it")
    func countedOnce() async {
        let budget = MemoryBudget(limit: 1 << 30)
        let (usedBytes, small) = await reactor.perform { [reactor] in
            let rig = FanOutRig(reactor)
            rig.shard.memory = budget
            let state = rig.observed()
            let readers = (0..<100).map { _ in rig.connection() }
            for (connection, link) in readers {
                rig.observe(state.source, connection)
                link.isWritable = false
            }
            rig.endTurns()
            let small = budget.usedBytes
            var usedBytes: [Int] = []
            for number in 0..<20 {
                state.set(String(repeating: "\(number)", count: 100_000))
                rig.endTurns()
                usedBytes.append(budget.usedBytes)
            }
            for (connection, _) in readers { connection.linkDidClose() }
            return (usedBytes, small)
        }
        #expect(small == 0)
        // The version of the readers, and the base of the next comparison: the same one.
        #expect(usedBytes.allSatisfy { $0 < 450_000 }, "\(usedBytes)")
        #expect(usedBytes.allSatisfy { $0 >= 100_000 })
        #expect(await reactor.perform { budget.usedBytes } == 0)
    }

    @Test("the last version is released with the first change that has no waiting readers")
    func forgotten() async {
        let budget = MemoryBudget(limit: 1 << 30)
        let usedBytes = await reactor.perform { [reactor] in
            let rig = FanOutRig(reactor)
            rig.shard.memory = budget
            rig.shard.resumeTime = .zero
            let state = rig.observed()
            let (connection, _) = rig.connection()
            rig.observe(state.source, connection)
            state.set(String(repeating: "x", count: 100_000))
            rig.endTurns()
            connection.linkDidClose()
            var usedBytes = [budget.usedBytes]
            state.count()
            rig.endTurns()
            usedBytes.append(budget.usedBytes)
            return withExtendedLifetime(rig) { usedBytes }
        }
        #expect(usedBytes[0] >= 100_000)
        #expect(usedBytes[1] == 0)
    }

    @Test("deltas of a large state retain none of its values")
    func differences() async {
        let budget = MemoryBudget(limit: 1 << 30)
        let usedBytes = await reactor.perform { [reactor] in
            let rig = FanOutRig(reactor)
            rig.shard.memory = budget
            let state = rig.observed()
            let (connection, link) = rig.connection()
            rig.observe(state.source, connection)
            rig.endTurns()
            state.set(String(repeating: "x", count: 1 << 20))
            rig.endTurns()
            for _ in 0..<60 {
                state.count()
                rig.endTurns()
            }
            precondition(link.versions.count == 62)
            let usedBytes = budget.usedBytes
            connection.linkDidClose()
            return usedBytes
        }
        #expect(usedBytes < 3 << 20, "\(usedBytes) bytes")
    }
}

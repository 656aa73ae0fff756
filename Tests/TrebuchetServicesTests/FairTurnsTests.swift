import Testing

@testable import TrebuchetServices

@Suite struct FairTurnsTests {
    /// An actor whose calls take turns.
    private actor Work {
        private let turns = FairTurns<String>()
        private(set) var order: [String] = []
        private var waiting = 0

        func call(_ scope: String, turns count: Int, nanoseconds: UInt64) async {
            for _ in 0..<count {
                waiting += 1
                await turns.begin(scope)
                waiting -= 1
                order.append(scope)
                turns.end(scope, after: nanoseconds)
            }
        }

        private(set) var turnCount = 0

        /// Takes turns until the work is cancelled.
        func run(_ scope: String) async {
            await turns.begin(scope)
            while !isStopped {
                turnCount += 1
                await turns.yield(scope, after: 2_000_000)
            }
            turns.end(scope, after: 0)
        }

        private var isStopped = false

        func stop() { isStopped = true }

        /// Returns the number of turns between two turns of the actor.
        func turnsInBetween() async -> Int {
            let before = turnCount
            await Task.yield()
            return turnCount - before
        }

        func block() async {
            await turns.begin("first")
        }

        func unblock() { turns.end("first", after: 1) }

        func waitUntilWaiting(_ count: Int) async { while waiting < count { await Task.yield() } }
    }

    @Test("a party with many calls has as much time as one with a single call")
    func scopes() async {
        let work = Work()
        await work.block()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<100 { group.addTask { await work.call("many", turns: 1, nanoseconds: 2_000_000) } }
            await work.waitUntilWaiting(100)
            group.addTask { await work.call("one", turns: 1, nanoseconds: 2_000_000) }
            await work.waitUntilWaiting(101)
            await work.unblock()
        }
        let order = await work.order
        #expect(order.count == 101)
        #expect(order.prefix(2).contains("one"), "\(order.prefix(10))")
    }

    @Test("work that takes no turns waits for few of them, however many calls do", arguments: [1, 100])
    func others(scopes: Int) async {
        let work = Work()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<200 { group.addTask { await work.run("\(number % scopes)") } }
            while await work.turnCount < 1_000 { await Task.yield() }
            for _ in 0..<20 { #expect(await work.turnsInBetween() <= 3) }
            await work.stop()
        }
    }

    @Test("time counts, not turns: a party with short turns has more of them")
    func time() async {
        let work = Work()
        await work.block()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<50 {
                group.addTask { await work.call("long", turns: 1, nanoseconds: 4_000_000) }
                group.addTask { await work.call("short", turns: 1, nanoseconds: 1_000_000) }
            }
            await work.waitUntilWaiting(100)
            await work.unblock()
        }
        let start = await work.order.prefix(50)
        #expect(start.count { $0 == "short" } >= 38, "\(start)")
    }

    @Test("time that nobody else wanted counts little, and an idle party saves none up")
    func idle() async {
        let work = Work()
        await work.call("busy", turns: 100, nanoseconds: 2_000_000)
        await work.block()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<50 {
                group.addTask { await work.call("busy", turns: 1, nanoseconds: 2_000_000) }
                group.addTask { await work.call("new", turns: 1, nanoseconds: 2_000_000) }
            }
            await work.waitUntilWaiting(100)
            await work.unblock()
        }
        let order = await work.order.dropFirst(100)
        #expect((12...20).contains(order.prefix(40).count { $0 == "busy" }), "\(order)")
    }
}

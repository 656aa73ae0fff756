import TestSupport
import Testing
import TrebuchetCluster

@testable import TrebuchetRedis

/// The table behaviour common to all engines.
@Suite(.hasRedis, .redisServer, .serialized)
struct TableConformanceTests {
    struct TableScenario: Sendable, CustomStringConvertible {
        let description: String
        var limits = ClusterEngineLimits()
        let steps: [TableStep]

        init(_ description: String, limits change: (inout ClusterEngineLimits) -> Void = { _ in }, _ steps: [TableStep])
        {
            (self.description, self.steps) = (description, steps)
            change(&limits)
        }
    }

    private static let all = [versions, expectations, numbers, expiringValues, pages, fullness, news, alarms]

    /// The use by alarms: empty values whose names begin with a time.
    private static let alarms = TableScenario(
        "rows without values are read in pages, also while others are inserted and deleted",
        [
            .change((0..<5).map { TableChange.Write.put("0\($0)/a", "") }, "changed 1"),
            .rows("", limit: 2, "00/a=@1 01/a=@1 … 01/a"), .change([.put("005/b", ""), .delete("02/a")], "changed 2"),
            .rows("", after: "01/a", limit: 2, "03/a=@1 04/a=@1"), .change([.put("01/a", "")], "changed 3"),
            .rows("", after: "00", limit: 3, "00/a=@1 005/b=@2 01/a=@3 … 01/a"),
            .change((0..<5).map { TableChange.Write.delete("0\($0)/a") }, "changed 4"), .rows("", "005/b=@2"),
            .change([.delete("005/b")], "changed 5"), .rows("", limit: 1, ""),
        ])

    private static let versions = TableScenario(
        "a value has the number of the change that put it",
        [
            .values(["a", "b"], "a=- b=-"),
            .change([.put("a", "1"), .put("b", "")], "changed 1"),
            .change([.put("b", "2"), .delete("c")], "changed 2"),
            .values(["b", "a", "c"], "b=2@2 a=1@1 c=-"),
            .change([.delete("a")], "changed 3"), .change([.put("a", "1")], "changed 4"),
            .values(["a"], "a=1@4"),
        ])

    private static let expectations = TableScenario(
        "a change is applied completely if its preconditions hold, and otherwise not at all",
        [
            .change([.put("a", "1")], expecting: ["a": 0], "changed 1"),
            .change([.put("a", "2"), .put("b", "2")], expecting: ["a": 0], news: "x", "conflict a"),
            .change([.put("b", "2")], expecting: ["a": 1, "b": 0], "changed 2"),
            .change([.put("a", "3")], expecting: ["a": 1, "b": 1], "conflict b"),
            .change([.put("a", "3")], expecting: ["a": 1, "b": 2], "changed 3"),
            // A value deleted and put again differs from the one that was read.
            .change([.delete("a")], "changed 4"), .change([.put("a", "3")], "changed 5"),
            .change([.put("b", "4")], expecting: ["a": 3], "conflict a"),
            .values(["a", "b"], "a=3@5 b=2@2"), .news(nil, "top 5"),
        ])

    private static let numbers = TableScenario(
        "numbers are incremented without being read",
        [
            .change([.add("n", 2)], "changed 1"),
            .change([.add("n", -3), .add("m", 1)], "changed 2"),
            .values(["n", "m"], "n=-1@2 m=1@2"), .change([.put("n", "x")], "changed 3"),
            .change([.add("n", 9_007_199_254_740_000), .add("n", 1)], "changed 4"),
            .values(["n"], "n=9007199254740001@4"),
        ])

    private static let expiringValues = TableScenario(
        "a value with a duration expires",
        [
            .change([.putExpiring("a", "1", EngineRig.short), .putExpiring("b", "2")], "changed 1"),
            .pass(["a"]), .values(["a", "b"], "a=- b=2@1"), .rows("", "b=2@1"),
            .change([.put("a", "3")], expecting: ["a": 0], "changed 2"), .values(["a"], "a=3@2"),
            // Put again without an expiry, it stays.
            .change([.putExpiring("c", "1", EngineRig.short)], "changed 3"),
            .change([.put("c", "2"), .putExpiring("d", "1", EngineRig.short)], "changed 4"),
            .pass(["d"]), .values(["c"], "c=2@4"), .change([.delete("d")], "changed 5"),
            .rows("", "a=3@2 b=2@1 c=2@4"),
        ])

    private static let pages = TableScenario(
        "names are listed in byte order, in pages", limits: { $0.readBytes = 6 },
        [
            .rows("", ""),
            .change(["b", "a/2", "a", "a/1", "é"].map { TableChange.Write.put($0, "1") }, "changed 1"),
            .rows("", "a=1@1 a/1=1@1 a/2=1@1 b=1@1 é=1@1"), .rows("a/", "a/1=1@1 a/2=1@1"),
            .rows("a", limit: 2, "a=1@1 a/1=1@1 … a/1"), .rows("a", after: "a/1", limit: 2, "a/2=1@1"),
            .rows("b", after: "a", "b=1@1"), .rows("a", after: "b", ""),
            .rows("", after: "a/2", limit: 2, "b=1@1 é=1@1"),
            .change([.put("a/1", "12345"), .put("a/2", "1234567")], "changed 2"),
            .rows("", "a=1@1 a/1=12345@2 … a/1"), .rows("", after: "a/1", "a/2=1234567@2 … a/2"),
        ])

    private static let fullness = TableScenario(
        "the number of values in a table is limited", limits: { $0.valuesPerTable = 2 },
        [
            .change(["a", "b", "c"].map { TableChange.Write.put($0, "1") }, "full"),
            .change([.put("a", "1"), .add("b", 1)], "changed 1"),
            .change([.put("c", "1")], "full"), .change([.add("c", 1)], "full"),
            .change([.put("a", "2"), .delete("c")], "changed 2"),
            .change([.delete("b")], "changed 3"), .change([.put("c", "1")], "changed 4"),
        ])

    private static let news = TableScenario(
        "a reader of notices learns of missing ones", limits: { $0.noticesPerTable = 2 },
        [
            .news(nil, "top 0"), .change([.put("a", "1")], news: "one", "changed 1"),
            .change([], news: "two", "changed 2"), .change([.put("a", "1")], "changed 3"),
            .news(nil, "1=one 2=two top 3"), .news(1, "2=two top 3"), .news(0, limit: 1, "1=one top 3 …"),
            .change([], news: "four", "changed 4"), .news(nil, "2=two 4=four top 4 cut 1"),
            .change([], news: "", "changed 5"), .news(4, "5= top 5 cut 2"), .news(9, "top 5 cut 2"),
        ])

    @Test("each scenario has the outcomes in its steps", arguments: EngineKind.withTables, all)
    private func courses(_ kind: EngineKind, _ course: TableScenario) async throws {
        let rig = try EngineRig(kind, limits: course.limits)
        for (number, step) in course.steps.enumerated() {
            guard let outcome = try await rig.play(step, on: ClusterTable("é{x}\u{0}")) else { continue }
            #expect(outcome == step.expected, "step \(number): \(step)")
        }
    }

    @Test("any random scenario has the same outcomes with Redis and in memory", arguments: 0..<4 as Range<UInt64>)
    func random(_ seed: UInt64) async throws {
        var limits = ClusterEngineLimits()
        (limits.valuesPerTable, limits.noticesPerTable, limits.readBytes) = (6, 5, 20)
        let rigs = try [EngineKind.memory, .redis].map { try EngineRig($0, limits: limits) }
        let table = ClusterTable("random")
        var course = RandomTableScenario(seed: seed)
        var outcomes: Set<String> = []
        for number in 0..<400 {
            let step = course.next()
            let (one, other) = (try await rigs[0].play(step, on: table), try await rigs[1].play(step, on: table))
            guard one == other else {
                Issue.record("seed \(seed), step \(number), \(step): \(one ?? "") and \(other ?? "")")
                return
            }
            course.note(one)
            outcomes.insert(String(one?.prefix { $0 != " " } ?? ""))
        }
        #expect(outcomes.isSuperset(of: ["changed", "conflict", "full"]))
    }

    @Test(
        "one of several nodes that change the value they have read concurrently succeeds",
        arguments: EngineKind.withTables)
    func race(_ kind: EngineKind) async throws {
        let rig = try EngineRig(kind)
        let table = ClusterTable("race")
        for round in 0..<20 as Range<UInt64> {
            let winners = try await withThrowingTaskGroup(of: Int.self) { group in
                for index in 0..<4 {
                    group.addTask {
                        let engine = index % 2 == 0 ? rig.one : rig.other
                        let change = TableChange(
                            [.init("a", .put([UInt8(index)])), .init("n", .increment(1))],
                            preconditions: [.init("a", version: round)])
                        if case .changed = try await engine.apply(change, to: table) { return 1 }
                        return 0
                    }
                }
                return try await group.reduce(0, +)
            }
            #expect(winners == 1)
        }
        #expect(try await rig.one.values(["n"], of: table).first??.bytes == Array("20".utf8))
    }

    @Test("a table subscriber is notified of changes, and of possibly missed ones", arguments: EngineKind.withTables)
    func watching(_ kind: EngineKind) async throws {
        let rig = try EngineRig(kind)
        let table = ClusterTable("watched")
        let received = Journal()
        let subscription = try await rig.other.subscribeToChanges(of: table) { event in
            switch event {
            case .noticesAvailable(let number): received.record("\(number)")
            case .eventsMissed: received.record("gap")
            case .ended(let error): received.record("\(error.code)")
            }
        }
        for news in [[1], nil, [2]] as [[UInt8]?] {
            _ = try await rig.one.apply(TableChange([.init("a", .put([]))], notice: news), to: table)
        }
        await received.wait { $0.count == 2 }
        #expect(received.entries == ["1", "3"])
        try await rig.breakSubscriptions()
        await received.wait { $0.contains("gap") }
        _ = try await rig.one.apply(TableChange([], notice: []), to: table)
        await received.wait(for: "4")
        await rig.other.close()
        await received.wait(for: "closed")
        subscription.cancel()
    }

    @Test(
        "a change intended for a table that the engine has lost fails with data loss", arguments: EngineKind.withTables)
    func lost(_ kind: EngineKind) async throws {
        let rig = try EngineRig(kind)
        let table = ClusterTable("lost")
        _ = try await rig.one.apply(TableChange([.init("a", .put([1]))]), to: table)
        let incarnation = try #require(try await rig.other.changeFeed(of: table, after: nil, limit: 1).tableIncarnation)
        let change = TableChange([.init("a", .put([2]))], tableIncarnation: incarnation)
        #expect(try await rig.other.apply(change, to: table) == .changed(2))
        try await rig.loseEverything()
        let error = await #expect(throws: ClusterEngineError.self) { try await rig.other.apply(change, to: table) }
        #expect(error?.code == .dataLoss)
        #expect(try await rig.one.apply(TableChange([]), to: table) == .changed(1))
        #expect(try await rig.one.changeFeed(of: table, after: nil, limit: 1).tableIncarnation != incarnation)
        await #expect(throws: ClusterEngineError.self) { try await rig.other.apply(change, to: table) }
    }

    @Test("a rate counts over all nodes, and a refused use consumes nothing", arguments: EngineKind.withTables)
    func rates(_ kind: EngineKind) async throws {
        let rig = try EngineRig(kind)
        let table = ClusterTable("rates")
        func take(_ engine: any ClusterEngine, _ names: [String: Int]) async throws -> Bool {
            let takes = names.sorted { $0.key < $1.key }.map { name, burst in
                RateConsumption(RateKey(name, "x"), interval: .seconds(1_000), burst: burst, maximumEntries: 10)
            }
            guard let wait = try await engine.consumeRates(takes, of: table) else { return true }
            #expect(wait > .seconds(900) && wait <= .seconds(1_000))
            return false
        }
        #expect(try await take(rig.one, ["a": 2, "b": 3]))
        #expect(try await take(rig.other, ["a": 2]))
        #expect(try await take(rig.one, ["a": 2, "b": 3]) == false)
        // The refused use has left two of b.
        #expect(try await take(rig.other, ["b": 3]))
        #expect(try await take(rig.one, ["b": 3]))
        #expect(try await take(rig.other, ["b": 3]) == false)
        // Another name, and the same name of another kind, are counted separately.
        let other = RateConsumption(RateKey("b", "y"), interval: .seconds(1_000), burst: 1, maximumEntries: 10)
        #expect(try await rig.one.consumeRates([other], of: table) == nil)
        try await rig.other.resetRate(RateKey("b", "x"), of: table)
        #expect(try await take(rig.one, ["b": 3]))
        #expect(try await take(rig.one, ["a": 2]) == false)
    }

    @Test("a consumed rate recovers with time", arguments: EngineKind.withTables)
    func comingBack(_ kind: EngineKind) async throws {
        let rig = try EngineRig(kind)
        let table = ClusterTable("rates")
        let take = RateConsumption(RateKey("a", "x"), interval: EngineRig.short, burst: 1, maximumEntries: 10)
        #expect(try await rig.one.consumeRates([take], of: table) == nil)
        rig.passTime()
        #expect(try await eventually { try await rig.other.consumeRates([take], of: table) == nil })
    }

    @Test(
        "a rate that is restored too late, by a clock that was ahead, is restored as if all of it was consumed now",
        arguments: EngineKind.withTables)
    func restoredTooLate(_ kind: EngineKind) async throws {
        let rig = try EngineRig(kind)
        let table = ClusterTable("rates")
        func take(_ name: String, every interval: Duration, burst: Int) async throws -> Duration? {
            let take = RateConsumption(RateKey("a", name), interval: interval, burst: burst, maximumEntries: 2)
            return try await rig.one.consumeRates([take], of: table)
        }
        for name in ["x", "y"] { #expect(try await take(name, every: .seconds(1_000_000), burst: 2) == nil) }
        let wait = try #require(try await take("x", every: .seconds(100), burst: 2))
        #expect((.seconds(99)...(.seconds(100))).contains(wait))
        // The others have no place for good.
        #expect(try await take("z", every: .seconds(100), burst: 1) == nil)
        #expect(try #require(try await take("z", every: .seconds(100), burst: 1)) > .seconds(90))
    }

    @Test(
        "a new key of a full rate table replaces the one that is restored first, and starts with its consumption",
        arguments: EngineKind.withTables)
    func forgotten(_ kind: EngineKind) async throws {
        let rig = try EngineRig(kind)
        let table = ClusterTable("rates")
        func take(_ name: String) async throws -> Bool {
            try await rig.one.consumeRates(
                [RateConsumption(RateKey("a", name), interval: .seconds(1_000), burst: 2, maximumEntries: 2)], of: table
            ) == nil
        }
        for name in ["x", "x", "y", "y", "z"] { #expect(try await take(name)) }
        #expect(try await take("y") == false)
        #expect(try await take("z") == false)
        // Evicted, and has one again.
        #expect(try await take("x"))
        #expect(try await take("x") == false)
    }

    @Test("oversized and invalid arguments are refused before a request is sent", arguments: EngineKind.withTables)
    func limits(_ kind: EngineKind) async throws {
        var limits = ClusterEngineLimits()
        (limits.valueBytes, limits.nameBytes, limits.snapshotBytes) = (4, 8, 10)
        let engine = try EngineRig(kind, limits: limits).one
        let table = ClusterTable("12345678")
        func code(_ body: () async throws -> Void) async -> ClusterEngineError.Code? {
            do { try await body() } catch { return (error as? ClusterEngineError)?.code }
            return nil
        }
        func change(_ writes: [TableChange.Write], news: [UInt8]? = nil) async -> ClusterEngineError.Code? {
            await code { _ = try await engine.apply(TableChange(writes, notice: news), to: table) }
        }
        #expect(await change([.put("12345678", "1234")], news: [1, 2, 3, 4]) == nil)
        #expect(await change([.put("123456789", "1")]) == .tooLarge)
        #expect(await change([.put("", "1")]) == .invalid)
        #expect(await change([.put("a", "12345")]) == .tooLarge)
        #expect(await change([], news: [1, 2, 3, 4, 5]) == .tooLarge)
        #expect(await change((0..<3).map { TableChange.Write.put("\($0)", "1234") }) == .tooLarge)
        #expect(await change([.putExpiring("a", "1", .seconds(86_401))]) == .invalid)
        #expect(await change([.putExpiring("a", "1", .zero)]) == .invalid)
        let many = (0...1_000).map { "\($0)" }
        #expect(await code { _ = try await engine.values(many, of: table) } == .tooLarge)
        #expect(await change(many.map { TableChange.Write.delete($0) }) == .tooLarge)
        #expect(await code { _ = try await engine.values([], of: ClusterTable("123456789")) } == .tooLarge)
        func take(
            _ kind: String, interval: Duration = .seconds(1), burst: Int = 1, maximumEntries: Int = 1, times: Int = 1
        ) async
            -> ClusterEngineError.Code?
        {
            let one = RateConsumption(
                RateKey(kind, "x"), interval: interval, burst: burst, maximumEntries: maximumEntries)
            return await code {
                _ = try await engine.consumeRates([RateConsumption](repeating: one, count: times), of: table)
            }
        }
        #expect(await take("a1") == nil)
        for kind in ["", "a:b", "é", String(repeating: "a", count: 65)] { #expect(await take(kind) == .invalid) }
        #expect(await take("b", interval: .zero) == .invalid)
        #expect(await take("b", burst: 0) == .invalid)
        #expect(await take("b", maximumEntries: 0) == .invalid)
        #expect(await take("b", times: 2) == .invalid)
    }
}

import Foundation
import TestSupport
import Testing

@testable import StateMachines

@MainActor
@Suite("Common dependencies", .timeLimit(.minutes(5)))
struct StandardDependencyTests {
    private struct Feature: Reducer {
        @Dependency(\.date) var date
        @Dependency(\.uuid) var uuid
        @Dependency(\.continuousClock) var clock
        @Dependency(\.withRandomNumberGenerator) var withRandomNumberGenerator
        @Dependency(\.calendar) var calendar
        @Dependency(\.locale) var locale
        @Dependency(\.timeZone) var timeZone

        struct State: Equatable {
            var texts: [String] = []
            var ticks = 0
        }
        enum Action: Equatable, Sendable { case now, id, roll, place, tick, ticked }

        func reduce(into state: inout State, action: Action) -> Effect<Action> {
            switch action {
            case .now: state.texts.append("\(date.now.timeIntervalSince1970) \(date().timeIntervalSince1970)")
            case .id: state.texts.append(uuid().uuidString)
            case .roll: state.texts.append("\(withRandomNumberGenerator { Int.random(in: 1...6, using: &$0) })")
            case .place:
                state.texts.append("\(calendar.identifier) \(locale.identifier) \(timeZone.secondsFromGMT())")
            case .tick:
                return .run { send in
                    for _ in 0..<2 {
                        try await clock.sleep(for: .seconds(1))
                        await send(.ticked)
                    }
                }
            case .ticked: state.ticks += 1
            }
            return .none
        }
    }

    /// Returns the same number each time.
    private struct ConstantGenerator: RandomNumberGenerator, Sendable {
        func next() -> UInt64 { 0x7000_0000_0001_2345 }
    }

    @Test("common dependencies have their given values in a test")
    func given() async {
        let clock = TestClock()
        let store = TestStore(initialState: Feature.State()) {
            Feature()
        } withDependencies: {
            $0.date.now = Date(timeIntervalSince1970: 5)
            $0.uuid = .incrementing
            $0.continuousClock = clock
            $0.withRandomNumberGenerator = WithRandomNumberGenerator(ConstantGenerator())
            $0.calendar = Calendar(identifier: .gregorian)
            $0.locale = Locale(identifier: "en_US")
            $0.timeZone = TimeZone(secondsFromGMT: 3600)!
        }
        store.exhaustivity = .off
        await store.send(.now) { $0.texts = ["5.0 5.0"] }
        await store.send(.id) { $0.texts[1] = "00000000-0000-0000-0000-000000000000" }
        await store.send(.id) { $0.texts[2] = "00000000-0000-0000-0000-000000000001" }
        await store.send(.roll) { $0.texts[3] = "3" }
        await store.send(.place) { $0.texts[4] = "gregorian en_US 3600" }
        store.exhaustivity = .on
        await store.send(.tick)
        #expect(await eventually { clock.sleeperCount == 1 }, "it sleeps")
        await clock.advance(by: .seconds(1))
        await store.receive(.ticked) { $0.ticks = 1 }
        #expect(await eventually { clock.sleeperCount == 1 }, "the task sleeps again")
        await clock.advance(by: .milliseconds(999))
        await clock.advance(by: .milliseconds(1))
        await store.receive(.ticked) { $0.ticks = 2 }
    }

    @Test("a common dependency that is not given fails its test")
    func notGiven() async {
        for (action, name) in [
            (Feature.Action.now, "date"), (.id, "uuid"), (.roll, "withRandomNumberGenerator"), (.place, "calendar"),
            (.tick, "continuousClock"),
        ] {
            let reports = await issues {
                let store = TestStore(initialState: Feature.State()) { Feature() }
                store.exhaustivity = .off
                let task = await store.send(action)
                task.cancel()
                await task.finish()
            }
            #expect(reports.first?.hasPrefix("Unimplemented: \(name).") == true, "\(action): \(reports)")
        }
    }

    @Test("common dependencies are the system's in a running program")
    func live() {
        withDependencies {
            $0.context = .live
        } operation: {
            @Dependency(\.date) var date
            @Dependency(\.uuid) var uuid
            @Dependency(\.continuousClock) var clock
            @Dependency(\.mainQueue) var queue
            #expect(abs(date.now.timeIntervalSinceNow) < 60)
            #expect(uuid() != uuid())
            #expect(clock is ContinuousClock)
            #expect(queue is ContinuousClock)
        }
    }

    @Test("an id made of a number ends with it")
    func numberedID() {
        #expect(UUID(1).uuidString == "00000000-0000-0000-0000-000000000001")
        #expect(UUID(0xABCD_EF01).uuidString == "00000000-0000-0000-0000-0000ABCDEF01")
        let constant = UUIDGenerator.constant(UUID(3))
        #expect(constant() == UUID(3))
    }
}

@Suite("Clocks for tests", .timeLimit(.minutes(5)))
struct ClockTests {
    @Test("a test clock wakes sleepers in the order of their deadlines")
    func order() async {
        let clock = TestClock()
        let seen = Recorder()
        let tasks = [3, 1, 2].map { second in
            Task {
                try? await clock.sleep(for: .seconds(second))
                seen.record("\(second) at \(clock.now.offset)")
            }
        }
        #expect(await eventually { clock.sleeperCount == 3 }, "all sleep")
        await clock.advance(by: .seconds(2))
        #expect(await eventually { seen.entries.count == 2 }, "two are awake")
        #expect(seen.entries == ["1 at 1.0 seconds", "2 at 2.0 seconds"])
        await #expect(throws: TestClock.SuspensionError.self) { try await clock.checkSuspension() }
        await clock.run()
        for task in tasks { await task.value }
        #expect(clock.now.offset == .seconds(3))
        await #expect(throws: Never.self) { try await clock.checkSuspension() }
    }

    @Test("sleep on a test clock can be cancelled, before and while it runs")
    func cancelled() async {
        let clock = TestClock()
        let sleeper = Task { try await clock.sleep(for: .seconds(1)) }
        #expect(await eventually { clock.sleeperCount == 1 }, "it sleeps")
        sleeper.cancel()
        await #expect(throws: CancellationError.self) { try await sleeper.value }
        #expect(clock.sleeperCount == 0)
        try? await clock.sleep(for: .zero)
    }

    @Test("sleep on an immediate clock returns at once, and advances its time")
    func immediate() async throws {
        let clock: any _Concurrency.Clock<Duration> = .immediate
        try await clock.sleep(for: .seconds(100))
        let own = ImmediateClock()
        try await own.sleep(for: .seconds(100))
        #expect(own.now.offset == .seconds(100))
    }
}

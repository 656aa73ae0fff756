import Testing

@testable import StateMachines

@MainActor
@Suite("A test store", .timeLimit(.minutes(5)))
struct TestStoreTests {
    struct Feature: Reducer {
        struct Item: Equatable {
            var name: String
            var tags: [String] = []
        }
        struct State: Equatable {
            var count = 0
            var items: [Item] = []
        }
        @CasePathable
        enum Action: Equatable {
            case add
            case nothing
            case load
            case loaded(Result)
            case wait
            case chain
        }
        @CasePathable
        enum Result: Equatable {
            case items([String])
            case failed
        }

        func reduce(into state: inout State, action: Action) -> Effect<Action> {
            switch action {
            case .add: state.count += 1
            case .nothing: break
            case .load: return .run { await $0(.loaded(.items(["a", "b"]))) }
            case .loaded(.items(let names)): state.items = names.map { Item(name: $0) }
            case .loaded(.failed): break
            case .wait: return .run { _ in await untilCancelled() }
            case .chain: return .concatenate(.send(.add), .send(.nothing), .send(.add))
            }
            return .none
        }
    }

    private func store(_ state: Feature.State = .init()) -> TestStoreOf<Feature> {
        TestStore(initialState: state) { Feature() }
    }

    @Test("an exhaustive test passes")
    func exhaustive() async {
        let reports = await issues {
            let store = store()
            await store.send(.add) { $0.count = 1 }
            await store.send(.nothing)
            await store.send(.load)
            await store.receive(\.loaded.items, ["a", "b"]) { $0.items = [.init(name: "a"), .init(name: "b")] }
            await store.send(.chain)
            await store.receive(.add) { $0.count = 2 }
            await store.receive { $0 == .nothing }
            await store.receive(\.add) { $0.count = 3 }
            store.assert { $0.count = 3 }
            await store.send(.wait)
            await store.skipInFlightEffects()
            await store.finish()
        }
        #expect(reports == [])
    }

    @Test("a difference to the expected state is shown")
    func wrongState() async {
        let reports = await issues {
            let store = store(.init(items: [.init(name: "a", tags: ["x"]), .init(name: "b")]))
            await store.send(.add) {
                $0.count = 2
                $0.items[1].tags = ["y"]
            }
        }
        #expect(
            reports == [
                """
                .add did not change the state as expected:

                    TestStoreTests.Feature.State(
                  −   count: 2,
                  +   count: 1,
                      items: [
                        [0]: TestStoreTests.Feature.Item(
                    … (5 unchanged)
                        [1]: TestStoreTests.Feature.Item(
                          name: "b",
                  −       tags: [
                  −         [0]: "y"
                  −       ]
                  +       tags: []
                        )
                      ]
                    … (1 unchanged)

                (expected: −, actual: +)
                """
            ])
    }

    @Test("a change without an assertion, and an assertion without a change, fail")
    func unassertedChange() async {
        let reports = await issues {
            let store = store()
            await store.send(.add)
            await store.send(.nothing) { $0.count = 1 }
        }
        #expect(reports.count == 2)
        #expect(reports.first?.hasPrefix("The state was not expected to change, but .add changed it:\n\n") == true)
        #expect(
            reports.last?.hasPrefix("A change of the state was expected after .nothing, but there was none.") == true)
    }

    @Test("an unreceived action fails")
    func unreceived() async {
        let sent = await issues {
            let store = store()
            await store.send(.chain)
            await store.send(.nothing)
        }
        #expect(sent.count == 1)
        #expect(
            sent.first?.hasPrefix(
                "3 actions must be received before another action is sent: .add, .nothing, .add. Assert it with")
                == true)
        let ended = await issues {
            let store = store()
            await store.send(.load).finish()
        }
        #expect(
            ended == [
                "An action must be received but the test has ended: .loaded(.items([[0]: \"a\", [1]: \"b\"])). Assert it with "
                    + "'receive', skip it with 'skipReceivedActions', or set 'exhaustivity' to '.off'."
            ])
        let finished = await issues {
            let store = store()
            await store.send(.load)
            await store.finish()
        }
        #expect(finished.count == 1)
    }

    @Test("another action than the expected one fails, and the difference is shown")
    func unexpectedAction() async {
        let reports = await issues {
            let store = store()
            await store.send(.load)
            await store.receive(.loaded(.failed)) { $0.items = [] }
            #expect(store.state.items.count == 2)
        }
        #expect(reports.count == 1)
        #expect(
            reports.first?.hasPrefix(
                "Expected to receive .loaded(.failed), but received .loaded(.items([[0]: \"a\", [1]: \"b\"])).\n\n")
                == true)
        #expect(reports.first?.contains("  −   .failed\n  +   .items(") == true)
        let path = await issues {
            let store = store()
            await store.send(.load)
            await store.receive(\.loaded.failed)
        }
        #expect(path.first?.hasPrefix("Expected to receive \\.loaded.failed, but received .loaded(") == true)
    }

    @Test("an expected action fails at once if no effect can send it, and in time if none does")
    func missingAction() async {
        let reports = await issues {
            let store = store()
            await store.receive(\.add)
            let waiting = await store.send(.wait)
            await store.receive(\.loaded.items, timeout: .milliseconds(10))
            waiting.cancel()
            await waiting.finish()
        }
        #expect(
            reports == [
                "Expected to receive \\.add, but no running effect could send it. First send the action whose effect sends it, or "
                    + "remove the 'receive'.",
                "Expected to receive \\.loaded.items, but no running effect sent it in time: .wait. Advance the clock or end "
                    + "the work that they wait for, or give 'receive' a longer 'timeout'.",
            ])
    }

    @Test("an unfinished effect fails")
    func unfinished() async {
        let finished = await issues {
            let store = store()
            await store.send(.wait)
            await store.finish(timeout: .milliseconds(10))
            await store.skipInFlightEffects()
        }
        #expect(finished.count == 1)
        #expect(finished.first?.hasPrefix("An effect still runs after waiting for them, started by .wait.") == true)
        let released = await issues {
            let store = store()
            await store.send(.wait)
        }
        #expect(released.count == 1)
        #expect(released.first?.hasPrefix("An effect still runs when the test ended, started by .wait.") == true)
    }

    @Test("a non-exhaustive store checks only the assertions")
    func notExhaustive() async {
        let reports = await issues {
            let store = store()
            store.exhaustivity = .off
            await store.send(.add)
            await store.send(.chain)
            await store.receive(\.nothing)
            await store.send(.load) { $0.count = 3 }
            await store.receive(\.loaded.items) { $0.items[0].name = "a" }
            await store.send(.wait)
        }
        #expect(reports == [])
        let wrong = await issues {
            let store = store()
            store.exhaustivity = .off
            await store.send(.add) { $0.count = 7 }
            await store.receive(\.add)
        }
        #expect(wrong.count == 2)
    }

    @Test("received actions are skipped on request, and the request fails without any")
    func skipping() async {
        let reports = await issues {
            let store = store()
            await store.send(.chain)
            await store.skipReceivedActions()
            #expect(store.state.count == 2)
            await store.skipReceivedActions()
            await store.skipReceivedActions(strict: false)
            await store.skipInFlightEffects()
        }
        #expect(
            reports == [
                "There were no received actions to skip. Remove the call, or pass 'strict: false'.",
                "There were no effects to skip. Remove the call, or pass 'strict: false'.",
            ])
    }

    @Test("a failure is reported to the running test")
    func realIssue() async {
        await withKnownIssue {
            let store = store()
            await store.send(.add) { $0.count = 5 }
        } matching: { issue in
            "\(issue)".contains("did not change the state as expected")
        }
    }
}

@Suite("Values as text")
struct ValueTextTests {
    struct Point: Equatable { var x = 1 }
    enum Shape { case dot, at(Point), pair(Int, named: String) }
    final class Reference {}

    @Test(
        "values are short on one line",
        arguments: [
            (Shape.dot as any Sendable, ".dot"), (Shape.at(Point()), ".at(ValueTextTests.Point(x: 1))"),
            (Shape.pair(1, named: "a"), ".pair(1, named: \"a\")"), ([1, 2], "[[0]: 1, [1]: 2]"),
            (["b": 2, "a": 1], "[\"a\": 1, \"b\": 2]"), (Set(["b", "a"]), "Set([\"a\", \"b\"])"),
            (Int?.none, "nil"), (Int?.some(3), "3"), ("", "\"\""), (1.5, "1.5"), (Duration.seconds(1), "1.0 seconds"),
        ] as [(any Sendable, String)])
    func summaries(value: any Sendable, text: String) {
        #expect(ValueText.summary(of: value) == text)
    }

    @Test("differences are shown by lines, with few equal ones")
    func differences() {
        #expect(TextDiff.of(["a", "b"], ["a", "b"]) == nil)
        #expect(TextDiff.of(["a"], ["b"]) == "  − a\n  + b")
        let left = (1...20).map { "\($0)" }
        var right = left
        right[9] = "x"
        right.append("21")
        #expect(
            TextDiff.of(left, right)
                == """
                    1
                … (6 unchanged)
                    8
                    9
                  − 10
                  + x
                    11
                    12
                … (6 unchanged)
                    19
                    20
                  + 21
                """.replacing("…", with: "    …"))
    }
}

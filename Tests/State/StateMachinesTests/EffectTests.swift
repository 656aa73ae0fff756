import TestSupport
import Testing

@testable import StateMachines

@Suite("Effects", .timeLimit(.minutes(5)))
struct EffectTests {
    struct Failure: Error {}

    /// Records the actions of effects; its actions are effects to run.
    struct Player: Reducer {
        typealias State = [String]
        enum Action: Sendable {
            case play(@Sendable () -> Effect<Action>)
            case note(String)
        }

        func reduce(into state: inout [String], action: Action) -> Effect<Action> {
            switch action {
            case .play(let effect): return effect()
            case .note(let text):
                state.append(text)
                return .none
            }
        }
    }

    typealias Piece = Effect<Player.Action>
    private let host = ReducerHost(initialState: [String]()) { Player() }

    private func play(_ effect: @escaping @Sendable () -> Piece) async -> StoreTask {
        await host.send(.play(effect))
    }

    private static func notes(_ texts: String...) -> Piece {
        .run { send in for text in texts { await send(.note(text)) } }
    }

    /// Runs until it is cancelled, and records its start and end.
    private static func endless(_ name: String, _ recorder: Recorder) -> Piece {
        .run { _ in
            recorder.record("\(name) began")
            await untilCancelled()
            recorder.record("\(name) ended")
        }
    }

    @Test("concatenated effects run one after the other, merged ones concurrently, and both nest")
    func composition() async {
        let recorder = Recorder()
        await play {
            .concatenate(
                Self.notes("f1"), Self.notes("l", "l"),
                .merge(Self.notes("p1", "p2"), .run { _ in recorder.record("together") }),
                .concatenate(.send(.note("s")), Self.notes("p3")))
        }.finish()
        #expect(await host.state == ["f1", "l", "l", "p1", "p2", "s", "p3"])
        #expect(recorder.entries == ["together"])
    }

    @Test("merged effects overlap")
    func overlap() async {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        // Each waits for the other: run one after the other they would never end.
        await play {
            .merge(
                .run { _ in for await _ in stream {} },
                .run { _ in continuation.finish() })
        }.finish()
    }

    @Test("actions of synchronous effects are reduced before send returns, in order")
    func immediateSend() async {
        let task = await play { .concatenate(.send(.note("a")), .merge(.send(.note("b")), .send(.note("c")))) }
        #expect(await host.state == ["a", "b", "c"])
        await task.finish()
    }

    @Test("effects are cancelled by their id while they run")
    func cancelRunning() async {
        let recorder = Recorder()
        let task = await play { Self.endless("a", recorder).cancellable(id: "id") }
        #expect(await eventually { recorder.entries == ["a began"] }, "it runs")
        await play { .cancel(id: "other") }.finish()
        await play { .cancel(id: "id") }.finish()
        await task.finish()
        #expect(recorder.entries == ["a began", "a ended"])
    }

    @Test("effects are cancelled while they wait for their turn")
    func cancelWaiting() async {
        let recorder = Recorder()
        let task = await play {
            .concatenate(
                Self.endless("first", recorder).cancellable(id: 1),
                Self.endless("second", recorder).cancellable(id: 2),
                Self.notes("third"))
        }
        #expect(await eventually { recorder.entries == ["first began"] }, "the first runs")
        await play { .concatenate(.cancel(id: 2), .cancel(id: 1)) }.finish()
        await task.finish()
        #expect(recorder.entries == ["first began", "first ended"])
        #expect(await host.state == ["third"])
    }

    @Test("effects are replaced, not prevented, by a preceding cancellation")
    func cancelThenStart() async {
        let recorder = Recorder()
        let old = await play { Self.endless("old", recorder).cancellable(id: 1) }
        #expect(await eventually { recorder.entries == ["old began"] }, "the old one runs")
        let new = await play {
            .concatenate(.cancel(id: 1), Self.notes("x"), Self.notes("new").cancellable(id: 1))
        }
        await old.finish()
        await new.finish()
        #expect(recorder.entries == ["old began", "old ended"])
        #expect(await host.state == ["x", "new"])
    }

    @Test("cancelInFlight ends the effects that were returned before with the same id")
    func cancelInFlight() async {
        let recorder = Recorder()
        let first = await play { Self.endless("a", recorder).cancellable(id: 1, cancelInFlight: true) }
        #expect(await eventually { recorder.entries == ["a began"] }, "it runs")
        let second = await play { Self.endless("b", recorder).cancellable(id: 1, cancelInFlight: true) }
        await first.finish()
        #expect(await eventually { recorder.entries.contains("b began") }, "the second runs")
        #expect(recorder.entries.contains("a ended"))
        #expect(!recorder.entries.contains("b ended"))
        second.cancel()
        await second.finish()
        #expect(recorder.entries.contains("b ended"))
    }

    @Test("cancellation of an outer effect ends the inner ones")
    func nestedCancellation() async {
        let recorder = Recorder()
        let task = await play {
            .merge(Self.endless("a", recorder).cancellable(id: "inner"), Self.endless("b", recorder))
                .cancellable(id: "outer")
        }
        #expect(await eventually { recorder.entries.count == 2 }, "both run")
        await play { .cancel(id: "outer") }.finish()
        await task.finish()
        #expect(Set(recorder.entries) == ["a began", "b began", "a ended", "b ended"])
    }

    @Test("cancelled effects send nothing")
    func sendAfterCancellation() async {
        let task = await play {
            .run { send in
                await untilCancelled()
                await send(.note("late"))
            }.cancellable(id: 1)
        }
        await play { .cancel(id: 1) }.finish()
        await task.finish()
        #expect(await host.state == [])
    }

    @Test("effects end when their host is released, including those that have not started")
    func endOfHost() async {
        let recorder = Recorder()
        var host: ReducerHost<[String], Player.Action>? = ReducerHost(initialState: [String]()) { Player() }
        let task = await host?.send(
            .play {
                .merge(
                    Self.endless("a", recorder),
                    .concatenate(Self.endless("b", recorder).cancellable(id: 1), Self.endless("c", recorder)))
            })
        #expect(await eventually { recorder.entries.count == 2 }, "both run")
        host = nil
        await task?.finish()
        #expect(Set(recorder.entries) == ["a began", "b began", "a ended", "b ended"])
    }

    @Test("effects of actions that effects send belong to the first send")
    func followers() async {
        await play {
            .run { send in
                await send(.play { .run { send in await send(.play { Self.notes("deep") }) } })
            }
        }.finish()
        #expect(await host.state == ["deep"])
    }

    @Test("effects are cancelled when the task that waits for their end is")
    func cancelledFinish() async {
        let recorder = Recorder()
        let task = await play { Self.endless("a", recorder) }
        #expect(await eventually { recorder.entries == ["a began"] }, "it runs")
        let waiting = Task { await task.finish() }
        waiting.cancel()
        await waiting.value
        #expect(recorder.entries == ["a began", "a ended"])
    }

    @Test("a handler receives the error of an effect")
    func caughtError() async {
        await play {
            .run { _ in
                throw Failure()
            } catch: { error, send in
                await send(.note("\(error)"))
            }
        }.finish()
        #expect(await host.state == ["Failure()"])
    }

    @Test("an error without a handler is reported, unless a cancelled task threw it")
    func uncaughtError() async {
        let reports = await issues {
            await play { .run { _ in throw Failure() } }.finish()
            await play { .run { _ in throw CancellationError() } }.finish()
        }
        #expect(reports == ["An \"Effect.run\" threw an unhandled error: Failure(). Handle it in 'catch:'."])
    }

    @Test("mapping converts the actions of effects")
    func mapping() async {
        await play {
            Effect<Int>.merge(
                .send(1), .run { send in await send(2) }.cancellable(id: 1), .concatenate(.send(3), .cancel(id: 9))
            ).map { .note("\($0)") }
        }.finish()
        #expect(await host.state == ["1", "3", "2"])
    }

    @Test("many effects can be merged or concatenated one by one", arguments: [false, true])
    func oneByOne(_ isMerged: Bool) async {
        // In a separate process: a stack overflow would end it.
        if isMerged {
            await #expect(processExitsWith: .success) {
                await EffectTests.sendMany { $0.merge(with: $1) }
                await EffectTests.sendMany { .merge($0, $1) }
            }
        } else {
            await #expect(processExitsWith: .success) {
                await EffectTests.sendMany { $0.concatenate(with: $1) }
                await EffectTests.sendMany { .concatenate($0, $1) }
            }
        }
    }

    private static func sendMany(_ add: @escaping @Sendable (Piece, Piece) -> Piece) async {
        let host = ReducerHost(initialState: [String]()) { Player() }
        await host.send(.play { (0..<10_000).reduce(.none) { effect, _ in add(effect, .send(.note("n"))) } })
        let count = await host.state.count
        precondition(count == 10_000)
    }

    @Test("ended effects leave nothing behind")
    func noLeftovers() async {
        let machine = EmbeddedReducer<[String], Player.Action> { Player() }
        var state: [String] = []
        let effect: Piece = .concatenate(
            Self.notes("a").cancellable(id: 1), .merge(.send(.note("b")), Self.notes("c").cancellable(id: 2)))
        await machine.send(.play { effect }, to: &state) { _ in }.finish()
        machine.send(.play { .send(.note("d")).cancellable(id: 3) }, to: &state) { _ in }
        #expect(machine.effects.origins.isEmpty)
        #expect(machine.effects.registrationCount == 0)
        #expect(state == ["d"])
    }
}

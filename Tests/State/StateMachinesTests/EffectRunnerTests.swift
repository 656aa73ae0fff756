import StateMachines
import TestSupport
import Testing

@Suite("Generated runners of effects", .timeLimit(.minutes(5)))
struct EffectRunnerTests {
    private func results(of effect: Scripted.IOEffect) async -> [String] {
        let host = ReducerHost(initialState: Scripted.State()) { Scripted() }
        await host.send(.input(.play(effect))).finish()
        return await host.state.results
    }

    @Test("runners may be in another file, and run in order or concurrently, nested")
    func composition() async {
        #expect(
            await results(of: .concat(.fetch(1), .log("x"), .ping, .concat(.fetch(2), .merge([])), .fetch(3)))
                == ["f1", "lx1", "lx2", "p", "f2", "f3"])
        let found = await results(of: .concat(.fetch(1), .merge(.ping, .concat(.fetch(3), .ping)), .log("y")))
        #expect(found.first == "f1")
        #expect(found.suffix(2) == ["ly1", "ly2"])
        #expect(found.dropFirst().dropLast(2).sorted() == ["f3", "p", "p"])
    }

    @Test("runIOEffect gives the same results as one stream")
    func stream() async {
        var found: [String] = []
        for await result in Scripted().runIOEffect(.concat(.fetch(1), .merge(.log("x")), .ping)) {
            found.append(result)
        }
        #expect(found == ["f1", "lx1", "lx2", "p"])
    }

    @Test("a generic machine may have runners", arguments: [1, 2])
    func generic(key: Int) async {
        let host = ReducerHost(initialState: Keyed<Int>.State()) { Keyed<Int>() }
        await host.send(.input(.find(key))).finish()
        #expect(await host.state.found == [key])
        let other = ReducerHost(initialState: Keyed<String>.State()) { Keyed<String>() }
        await other.send(.input(.find("a"))).finish()
        #expect(await other.state.found == ["a"])
    }

    @Test("runners may be isolated to an actor, and change it")
    func isolated() async {
        let host = ReducerHost(initialState: Isolated.State()) { Isolated() }
        await host.send(.input(.count(by: 2))).finish()
        #expect(await host.state.counts == [2, 4, 2])
    }

    @Test("runners are found for labels and names that are keywords")
    func names() async {
        let host = ReducerHost(initialState: Named.State()) { Named() }
        await host.send(
            .input(
                .play(
                    .concat(
                        .letter(in: "x"), .default, .switch(case: 4), .fetch(id: 1), .fetchName(name: 2),
                        .send(.init(text: "sent")), .probe)))
        ).finish()
        #expect(await host.state.results == ["in x", "default", "case 4", "id 1", "name 2", "sent", "probe"])
    }

    @Test("runners of a machine's children run, whichever of their results the parent handles")
    func children() async {
        let host = ReducerHost(initialState: Family.State()) { Family() }
        await host.send(.first(.input(.talk))).finish()
        await host.send(.second(.input(.talk))).finish()
        await host.send(.scripted(.input(.play(.merge(.ping))))).finish()
        let state = await host.state
        #expect(state.first.words == ["a"])
        #expect(state.second.words == ["a"])
        #expect(state.scripted.results == ["p"])
        #expect(state.received == 1)
        await host.send(.input(.reset))
        #expect(await host.state == Family.State())
    }

    @Test("runners of a child without children run")
    func defaultNestedBody() async {
        let host = ReducerHost(initialState: Talking.State()) { Talking() }
        await host.send(.input(.talk)).finish()
        #expect(await host.state.words == ["a"])
    }

    @Test("a long stream delays the effects concatenated to it, until it is cancelled")
    func longStream() async {
        let recorder = Recorder()
        let effect: ComposableEffect<String> = .concat([.just("endless"), .just("next")])
        let reader = Task {
            let stream = effect.stream { name -> AsyncStream<Int> in
                recorder.record(name)
                return AsyncStream { _ in }
            }
            for await _ in stream {}
        }
        #expect(await eventually { recorder.entries == ["endless"] }, "the first runs")
        reader.cancel()
        await reader.value
        #expect(recorder.entries == ["endless"])
    }

    @Test("a deferred stream applies its own buffering policy for a slow reader")
    func deferredPolicy() async {
        let (stream, source) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingNewest(1))
        let deferred = AsyncStream<Int>.deferred { stream }
        for number in 0..<1000 {
            source.yield(number)
            await Task.yield()
        }
        source.finish()
        var read: [Int] = []
        for await number in deferred { read.append(number) }
        // Two elements were prefetched.
        #expect(read.count <= 3)
        #expect(read.last == 999)
        #expect(read == read.sorted())
    }

    @Test("a deferred stream ends when it is released, and when its reader is cancelled")
    func deferredEnd() async {
        let recorder = Recorder()
        func make() -> AsyncStream<Int> {
            .deferred {
                AsyncStream { continuation in
                    continuation.onTermination = { _ in recorder.record("ended") }
                    for number in 0..<10 { continuation.yield(number) }
                }
            }
        }
        for await number in make() where number == 1 { break }
        #expect(await eventually { recorder.entries == ["ended"] }, "the source ends with the stream")
        _ = make()
        #expect(await eventually { recorder.entries.count == 2 }, "the source ends without a reader")
        let reader = Task { for await _ in make() {} }
        await Task.yield()
        reader.cancel()
        await reader.value
        #expect(await eventually { recorder.entries.count == 3 }, "the source ends with its reader")
    }

    @Test("merged streams wait for the reader of their one stream, and all elements are read")
    func mergedPolicy() async {
        let begun = Recorder()
        let effect = ComposableEffect<Int>.merge((0..<10).map { .just($0) })
        let stream = effect.stream { number in
            begun.record("\(number)")
            return AsyncStream { continuation in
                for offset in 0..<10 { continuation.yield(number * 10 + offset) }
                continuation.finish()
            }
        }
        var read: Set<Int> = []
        for await number in stream { read.insert(number) }
        #expect(read == Set(0..<100))
        #expect(begun.entries.count == 10)
    }
}

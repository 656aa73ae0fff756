import Testing

@testable import Loading

@Suite(.timeLimit(.minutes(5))) @MainActor struct LoadingStatesTests {
    @Test("a slow reader still sees every state, and all readers see the same")
    func everyState() async {
        let loader = BlockLoadable { 1 }
        var readers = (0..<3).map { _ in LoadingStates(store: Self.store(of: loader)).makeAsyncIterator() }
        for percent in 1...5 { loader.updateState(.loading(LoadingProgress(percent: percent))) }
        loader.updateState(.idle)
        loader.updateState(.loaded(7))
        for index in readers.indices {
            var seen: [LoadingState<Int>] = []
            while seen.last != .loaded(7), let state = await readers[index].next(isolation: #isolation) {
                seen.append(state)
            }
            let progress = (1...5).map { LoadingState<Int>.loading(LoadingProgress(percent: $0)) }
            #expect(seen == [.idle] + progress + [.idle, .loaded(7)])
        }
    }

    @Test("a new reader starts with the current state")
    func replay() async {
        let loader = BlockLoadable { 1 }
        await loader.load()
        for await state in loader.state {
            #expect(state == .loaded(1))
            break
        }
    }

    @Test("a reader that is too far behind loses the oldest states, never the newest")
    func bound() async {
        let loader = BlockLoadable { 1 }
        var reader = LoadingStates(store: Self.store(of: loader)).makeAsyncIterator()
        let last = LoadingStates<Int>.bufferLimit + 10
        for number in 1...last { loader.updateState(.loaded(number)) }
        #expect(await reader.next() == .idle)
        #expect(await reader.next() == .loaded(11))
        var state = LoadingState.loaded(11)
        while state != .loaded(last), let next = await reader.next() { state = next }
        #expect(state == .loaded(last))
    }

    @Test("an equal state is not published again")
    func equalStates() async {
        let loader = BlockLoadable { 1 }
        var reader = LoadingStates(store: Self.store(of: loader)).makeAsyncIterator()
        loader.reset()
        loader.updateState(.failure(Refusal()))
        loader.updateState(.failure(Refusal()))
        loader.updateState(.loaded(1))
        #expect(await reader.next() == .idle)
        #expect(await reader.next() == .failure(Refusal()))
        #expect(await reader.next() == .loaded(1))
    }

    @Test("a cancelled reader ends")
    func cancellation() async {
        let loader = BlockLoadable { 1 }
        let observer = Task {
            for await _ in loader.state {}
            return true
        }
        await settle()
        observer.cancel()
        #expect(await observer.value)
    }

    private static func store<Value>(of loader: BlockLoadable<Value>) -> LoadingStateStore<Value> {
        (loader.state as! LoadingStates<Value>).store
    }
}

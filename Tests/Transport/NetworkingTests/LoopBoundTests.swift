import Networking
import Testing
import Transports

@Suite(.timeLimit(.minutes(1))) struct LoopBoundTests {
    private final class Counter {
        var count = 0
    }

    @Test("a bound object and a variable are used on their loop, from closures of other threads")
    func used() async throws {
        let reactor = ReactorGroup.client
        let counter = LoopBound(passing: Counter(), to: reactor)
        let variable = LoopVariable<[Int]>([], on: reactor)
        for number in 1...3 {
            await reactor.perform {
                counter.value.count += 1
                variable.value.append(number)
            }
        }
        #expect(await reactor.perform { counter.value.count } == 3)
        #expect(await reactor.perform { LoopBound(variable.value, on: reactor).value } == [1, 2, 3])
    }

    #if DEBUG
        @Test("use on another thread ends a debug build")
        func misused() async {
            await #expect(processExitsWith: .failure) {
                _ = LoopBound(passing: Counter(), to: ReactorGroup.client).value
            }
            await #expect(processExitsWith: .failure) { LoopVariable(0, on: ReactorGroup.client).value += 1 }
            await #expect(processExitsWith: .failure) { _ = LoopBound(0, on: ReactorGroup.client) }
        }
    #endif
}

import Loading
import Testing

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

struct LoadingStateTests {
    private struct Plain: Error { var text = "a" }
    private struct Localized: LocalizedError { var errorDescription: String? { "no network" } }

    @Test("percent is clamped to 0 to 100", arguments: [(-5, 0), (0, 0), (42, 42), (100, 100), (101, 100)])
    func clamping(given: Int, clamped: Int) {
        #expect(LoadingProgress(percent: given).percent == clamped)
    }

    @Test("a failure equals a failure with an equal error, and no other")
    func failureEquality() {
        #expect(LoadingState<Int>.failure(Refusal(number: 1)) == .failure(Refusal(number: 1)))
        #expect(LoadingState<Int>.failure(Refusal(number: 1)) != .failure(Refusal(number: 2)))
        #expect(LoadingState<Int>.failure(Refusal()) != .failure(CancellationError()))
        // Errors that are not Equatable are compared by their descriptions.
        #expect(HashableError(Plain()) == HashableError(Plain()))
        #expect(HashableError(Plain()) != HashableError(Plain(text: "b")))
        #expect(Set([HashableError(Refusal()), HashableError(Refusal()), HashableError(Plain())]).count == 2)
    }

    @Test("states describe themselves")
    func descriptions() {
        #expect("\(LoadingState<Int>.idle)" == ".idle")
        #expect("\(LoadingState<Int>.loading(nil))" == ".loading")
        let progress = LoadingProgress(message: "half", percent: 50)
        #expect("\(LoadingState<Int>.loading(progress))" == ".loading percent: 50, message: half")
        #expect("\(LoadingState<Int>.loaded(3))" == ".loaded(3)")
        #expect("\(LoadingState<Int>.failure(Localized()))" == "no network")
        #expect("\(LoadingState<Int>.failure(Refusal(number: 1)))".contains("Refusal(number: 1)"))
    }

    @Test("a state provides its value, its error and whether it is loading")
    func parts() {
        #expect(LoadingState.loaded([Int]()).value == [])
        #expect(LoadingState<Int>.failure(Refusal()).error as? Refusal == Refusal())
        #expect(LoadingState<Int>.loading(nil).isLoading)
        #expect(!LoadingState<Int>.idle.isLoading)
    }
}

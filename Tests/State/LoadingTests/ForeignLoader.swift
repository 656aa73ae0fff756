import Loading
import Relays

/// A loader that uses only the module's protocol.
@MainActor
final class ForeignLoader: Loadable {
    let finish = StateRelay(false)
    private let relay = StateRelay(LoadingState<Int>.idle)
    private(set) var isCanceled = false

    var state: any AsyncSequence<LoadingState<Int>, Never> { relay.stream }
    var currentState: LoadingState<Int> { relay.currentValue }

    func cancel() { isCanceled = true }
    func reset() { isCanceled = false }

    func load() async {
        relay.update(.loading(LoadingProgress(message: "half")))
        for await isFinished in finish.stream where isFinished { break }
        relay.update(.loaded(5))
    }
}

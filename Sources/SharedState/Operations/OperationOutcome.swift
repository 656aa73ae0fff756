internal import Synchronization

/// The outcome of an operation without its own task: reported once by other code, from any thread.
///
/// Calls show their outcomes in the order of the reports, across all operations.
package final class OperationOutcome<Output: Sendable>: Sendable {
    package typealias SettledResult = Result<Output, any Error>

    /// The reported outcome and the observer, under the lock.
    private struct State {
        var told: SettledResult?
        var observer: (@MainActor @Sendable (SettledResult) -> Void)?
    }

    private let state = Mutex(State())

    package init(_ told: SettledResult? = nil) {
        if let told { report(told) }
    }

    /// An outcome that can no longer be reported is `CancellationError`, so that callbacks always come once.
    deinit { report(.failure(CancellationError())) }

    /// Nil until it is reported.
    package var told: SettledResult? { state.withLock { $0.told } }

    /// Reports the outcome. The first one counts.
    package func report(_ told: SettledResult) {
        let observer = state.withLock { state -> (@MainActor @Sendable (SettledResult) -> Void)? in
            guard state.told == nil else { return nil }
            state.told = told
            defer { state.observer = nil }
            return state.observer
        }
        if let observer { SettlementQueue.append { observer(told) } }
    }

    /// Sets the only observer.
    ///
    /// - Parameter observer: called once, on the main actor and not before this method returns to it.
    func observe(_ observer: @escaping @MainActor @Sendable (SettledResult) -> Void) {
        let told = state.withLock { state in
            if state.told == nil { state.observer = observer }
            return state.told
        }
        if let told { SettlementQueue.append { observer(told) } }
    }
}

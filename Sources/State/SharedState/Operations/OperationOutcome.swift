internal import Synchronization

/// The outcome of an operation without its own task: reported once by other code, from any thread.
///
/// Calls show their outcomes in the order of the reports, across all operations.
package final class OperationOutcome<Output: Sendable>: Sendable {
    package typealias SettledResult = Result<Output, any Error>

    /// The reported outcome and the observer, under the lock.
    private struct State {
        var result: SettledResult?
        var observer: (@MainActor @Sendable (SettledResult) -> Void)?
    }

    private let state = Mutex(State())

    package init(_ result: SettledResult? = nil) {
        if let result { report(result) }
    }

    /// An outcome that can no longer be reported is `CancellationError`, so that callbacks always come once.
    deinit { report(.failure(CancellationError())) }

    /// Nil until it is reported.
    package var result: SettledResult? { state.withLock { $0.result } }

    /// Reports the outcome. The first one counts.
    package func report(_ result: SettledResult) {
        let observer = state.withLock { state -> (@MainActor @Sendable (SettledResult) -> Void)? in
            guard state.result == nil else { return nil }
            state.result = result
            defer { state.observer = nil }
            return state.observer
        }
        if let observer { SettlementQueue.append { observer(result) } }
    }

    /// Sets the only observer.
    ///
    /// - Parameter observer: called once, on the main actor and not before this method returns to it.
    func observe(_ observer: @escaping @MainActor @Sendable (SettledResult) -> Void) {
        let result = state.withLock { state in
            if state.result == nil { state.observer = observer }
            return state.result
        }
        if let result { SettlementQueue.append { observer(result) } }
    }
}

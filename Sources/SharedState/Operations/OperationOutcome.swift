internal import Synchronization

/// What an operation comes to that is brought to its end by somebody else than a task of its own: told once, from anywhere.
///
/// Calls show their outcomes in the order in which these were told, whatever they are outcomes of.
package final class OperationOutcome<Output: Sendable>: Sendable {
    package typealias Told = Result<Output, any Error>

    private struct State {
        var told: Told?
        var observer: (@MainActor @Sendable (Told) -> Void)?
    }

    private let state = Mutex(State())

    package init(_ told: Told? = nil) {
        if let told { tell(told) }
    }

    /// One that nobody can tell any more comes to `CancellationError`: callbacks come once, whatever happens.
    deinit { tell(.failure(CancellationError())) }

    /// Nil until it is told.
    package var told: Told? { state.withLock { $0.told } }

    /// The first outcome counts.
    package func tell(_ told: Told) {
        let observer = state.withLock { state -> (@MainActor @Sendable (Told) -> Void)? in
            guard state.told == nil else { return nil }
            state.told = told
            defer { state.observer = nil }
            return state.observer
        }
        if let observer { OrderedSettling.append { observer(told) } }
    }

    /// - Parameter observer: called once, on the main actor and not before this returns to it. There is one.
    func observe(_ observer: @escaping @MainActor @Sendable (Told) -> Void) {
        let told = state.withLock { state in
            if state.told == nil { state.observer = observer }
            return state.told
        }
        if let told { OrderedSettling.append { observer(told) } }
    }
}

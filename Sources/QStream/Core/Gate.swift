internal import Synchronization

/// Open or closed; those who come while it is closed wait until it opens.
final class Gate: Sendable {
    private struct State {
        var isOpen: Bool
        var waiting: [Int: UnsafeContinuation<Void, Never>] = [:]
        var lastNumber = 0
    }

    private let state: Mutex<State>

    init(isOpen: Bool = false) { state = Mutex(State(isOpen: isOpen)) }

    func close() { state.withLock { $0.isOpen = false } }

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            var waiting: [Int: UnsafeContinuation<Void, Never>] = [:]
            swap(&waiting, &state.waiting)
            return waiting
        }
        for continuation in waiting.values { continuation.resume() }
    }

    /// Returns when the gate is open, or the task is cancelled.
    func wait() async {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                // Asked under the lock: the handler below has run and the flag is up, or it will find the continuation.
                let isWaiting = state.withLock { state in
                    guard !state.isOpen, !Task.isCancelled else { return false }
                    state.waiting[number] = continuation
                    return true
                }
                if !isWaiting { continuation.resume() }
            }
        } onCancel: {
            let continuation = state.withLock { $0.waiting.removeValue(forKey: number) }
            continuation?.resume()
        }
    }
}

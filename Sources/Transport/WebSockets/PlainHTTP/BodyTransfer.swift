internal import Synchronization

/// The transfer of a body to a peer: its progress, and the way to end it early.
package final class BodyTransfer: Sendable {
    private struct State {
        var acknowledgedBytes: UInt64 = 0
        var isCancelled = false
        var onCancel: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    package init() {}

    /// The number of bytes that the peer has acknowledged, as of the last piece.
    package var acknowledgedBytes: UInt64 { state.withLock { $0.acknowledgedBytes } }

    package func recordProgress(_ bytes: UInt64) { state.withLock { $0.acknowledgedBytes = bytes } }

    /// Ends the transfer: the connection is reset.
    package func cancel() {
        let onCancel = state.withLock { state in
            state.isCancelled = true
            return state.onCancel.take()
        }
        onCancel?()
    }

    /// Registers the function that ends the transfer, and calls it if that was requested already.
    func setCancellation(_ onCancel: @escaping @Sendable () -> Void) {
        let isCancelled = state.withLock { state in
            if !state.isCancelled { state.onCancel = onCancel }
            return state.isCancelled
        }
        if isCancelled { onCancel() }
    }
}

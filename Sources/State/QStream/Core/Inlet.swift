internal import Relays
public import Synchronization

/// An attachment point below an outlet, with the sink of its values.
///
/// Delivery begins with the current value; values emitted meanwhile wait until that has been delivered.
@usableFromInline
final class Inlet<Value: Sendable>: Sendable {
    @usableFromInline typealias Sink = nonisolated(nonsending) @Sendable (Value, Wave) async -> Void

    /// The delivery of the current value, and the values that wait for its end.
    private struct Opening {
        /// The task that delivers the current value.
        let task: Int
        var waiting: [UnsafeContinuation<Void, Never>] = []
        /// Values sent by that task during the delivery.
        var deferredValues = Fifo<Value>()
    }

    @usableFromInline let sink: Sink
    /// The sink of the current value, if it differs from `sink`.
    private let first: Sink?
    /// The outlet or join below that this inlet leads to, if any.
    let destination: (any Downstream)?
    /// Written once, at attachment.
    let number = Atomic<UInt64>(0)
    @usableFromInline let phase = Atomic(InletPhase.opening)
    private let opening: Mutex<Opening>

    init(into destination: (any Downstream)?, first: Sink? = nil, _ sink: @escaping Sink) {
        self.destination = destination
        self.first = first
        self.sink = sink
        opening = Mutex(Opening(task: CurrentTask.identity))
    }

    @inlinable
    @inline(__always)
    nonisolated(nonsending) func deliver(_ value: Value, _ wave: Wave) async {
        if phase.load(ordering: .acquiring) == .open {
            await sink(value, wave)
        } else {
            await deliverLater(value, wave)
        }
    }

    @usableFromInline
    nonisolated(nonsending) func deliverLater(_ value: Value, _ wave: Wave) async {
        if phase.load(ordering: .acquiring) == .opening, opening.withLock({ $0.task == wave.task }) {
            Deadlock.report(
                "a subscriber that is receiving a stream's current value sends a value into the same stream")
            let isDeferred = opening.withLock { opening in
                guard phase.load(ordering: .acquiring) == .opening else { return false }
                opening.deferredValues.append(value)
                return true
            }
            if isDeferred { return }
        }
        await withUnsafeContinuation { continuation in
            let isWaiting = opening.withLock { opening in
                guard phase.load(ordering: .acquiring) == .opening else { return false }
                opening.waiting.append(continuation)
                return true
            }
            if !isWaiting { continuation.resume() }
        }
        if phase.load(ordering: .acquiring) == .open { await sink(value, wave) }
    }

    /// Lets values pass from now on.
    func open() { setPhase(to: .open) }

    /// Delivers the current value, then lets the others pass.
    func open(with value: Value, _ wave: Wave) async {
        await (first ?? sink)(value, wave)
        while let next = opening.withLock({ $0.deferredValues.popFirst() }) {
            let nextWave = Wave()
            await nextWave.run { await sink(next, nextWave) }
        }
        open()
    }

    /// Lets no value pass from now on.
    func close() { setPhase(to: .closed) }

    private func setPhase(to new: InletPhase) {
        let waiting = opening.withLock { opening in
            if phase.load(ordering: .relaxed) != .closed { phase.store(new, ordering: .releasing) }
            var waiting: [UnsafeContinuation<Void, Never>] = []
            swap(&waiting, &opening.waiting)
            return waiting
        }
        for continuation in waiting { continuation.resume() }
    }
}

/// At file level: a type nested in the generic class would be looked up by `Value` at each delivery.
@usableFromInline
enum InletPhase: UInt8, AtomicRepresentable, Sendable {
    case opening, open, closed
}

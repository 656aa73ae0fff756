internal import Synchronization

/// The place where several streams meet, whose newest values come out together.
///
/// A wave may reach it through several slots: their values are taken together when the wave fires the join, so no
/// combination of one wave's new value with its old one ever comes out. A slot that got several values in one wave gives
/// as many combinations. Waves that reach different slots do not wait for each other.
final class Join<Output: Sendable>: Joining {
    private struct Guarded {
        /// Waves that have reached the join and not yet left it.
        var waves: [Wave] = []
        var waiting: [(Wave, UnsafeContinuation<Void, Never>)] = []
    }

    let outlet = Outlet<Output>(height: 1)
    private let line = Line("changes an input of the combineLatest that it came from")
    private let guarded = Mutex(Guarded())
    private let slots: [any JoinSlot]
    /// The combination of what the slots hold, nil while one is empty; called under the lock.
    private let combine: @Sendable () -> Output?

    init(_ slots: [any JoinSlot], _ combine: @escaping @Sendable () -> Output?) {
        self.slots = slots
        self.combine = combine
    }

    var height: Int { outlet.height }

    /// A wave has brought a value for one of the slots.
    func offer<Value>(_ value: Value, to slot: Slot<Value>, _ wave: Wave) {
        let isFirst = guarded.withLock { guarded in
            slot.pending.append((wave, value))
            if guarded.waves.contains(where: { $0 === wave }) { return false }
            guarded.waves.append(wave)
            return true
        }
        if isFirst { wave.fireLater(self) }
    }

    func fire(_ wave: Wave) async {
        if let older = guarded.withLock({ handOver(wave, &$0) }) {
            // Waiting here could hold up what the older wave needs, so the sender waits when it holds nothing.
            wave.settleLater { await self.waitUntilFired(older) }
            return
        }
        guard await line.enter(wave.task) else {
            return line.later {
                let own = Wave()
                await self.fireNow(wave, emittingIn: own)
                await own.drain()
            }
        }
        await fireNow(wave, emittingIn: wave)
        line.leave()
    }

    private func fireNow(_ wave: Wave, emittingIn own: Wave) async {
        for output in guarded.withLock({ _ in take(wave) }) { await outlet.emit(output, own) }
        leave(wave)
    }

    /// Leaves the wave's values to an older wave that has not fired and has a value in front of one of them.
    ///
    /// To fire at once would tear the older wave apart. When the older one waits for this one (it is the same task's),
    /// there is no other way, and its values are taken along.
    private func handOver(_ wave: Wave, _ guarded: inout Guarded) -> Wave? {
        for slot in slots {
            guard let older = slot.waveInFront(of: wave), older.task != wave.task else { continue }
            for slot in slots { slot.hand(from: wave, to: older) }
            remove(wave, &guarded)
            return older
        }
        return nil
    }

    /// The combinations that the wave makes, now that it is complete.
    private func take(_ wave: Wave) -> [Output] {
        var outputs: [Output] = []
        var counts = slots.map { $0.countUpToLast(of: wave) }
        while counts.contains(where: { $0 > 0 }) {
            for index in slots.indices where counts[index] > 0 {
                slots[index].advance()
                counts[index] -= 1
            }
            if let output = combine() { outputs.append(output) }
        }
        return outputs
    }

    private func leave(_ wave: Wave) {
        let waiting = guarded.withLock { guarded in
            remove(wave, &guarded)
            let waiting = guarded.waiting.filter { $0.0 === wave }
            guarded.waiting.removeAll { $0.0 === wave }
            return waiting
        }
        for (_, continuation) in waiting { continuation.resume() }
    }

    private func remove(_ wave: Wave, _ guarded: inout Guarded) {
        guarded.waves.removeAll { $0 === wave }
    }

    private func waitUntilFired(_ wave: Wave) async {
        await withUnsafeContinuation { continuation in
            let isWaiting = guarded.withLock { guarded in
                guard guarded.waves.contains(where: { $0 === wave }) else { return false }
                guarded.waiting.append((wave, continuation))
                return true
            }
            if !isWaiting { continuation.resume() }
        }
    }
}

extension Join: Raising {
    func raise(to height: Int) { outlet.raise(to: height + 1) }
}

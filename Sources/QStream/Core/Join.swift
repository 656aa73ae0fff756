internal import Synchronization

/// The place where several streams meet, whose newest values come out together.
///
/// A wave may reach it through several slots: their values are taken together when the wave fires the join, so no
/// combination of one wave's new value with its old one ever comes out. A slot that got several values in one wave gives
/// as many combinations. Waves that reach different slots do not wait for each other.
final class Join<Output: Sendable>: Joining {
    let outlet = Outlet<Output>(height: 1)
    private let line = Line("changes an input of the combineLatest that it came from")
    /// The waves that have reached the join and not yet fired it.
    private let waves = Mutex<[Wave]>([])
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
        let isFirst = waves.withLock { waves in
            slot.pending.append((wave, value))
            if waves.contains(where: { $0 === wave }) { return false }
            waves.append(wave)
            return true
        }
        if isFirst { wave.fireLater(self) }
    }

    func fire(_ wave: Wave) async {
        if waves.withLock({ _ in mergeIntoOlder(wave) }) { return }
        guard await line.enter(wave.task) else {
            return line.later {
                let own = Wave()
                for output in self.take(wave) { await self.outlet.emit(output, own) }
                await own.drain()
            }
        }
        for output in take(wave) { await outlet.emit(output, wave) }
        line.leave()
    }

    /// Lets the wave become part of an older one that has not fired and has a value in front of one of this one's.
    ///
    /// To fire at once would tear the older wave apart; to wait could hold up what it needs. Where neither can be helped
    /// (the older wave is the same task's, and waits for this one), its values here are taken along.
    private func mergeIntoOlder(_ wave: Wave) -> Bool {
        for slot in slots {
            if let older = slot.waveInFront(of: wave), wave.merge(into: older, at: self) { return true }
        }
        return false
    }

    /// The combinations that the wave makes, now that it is complete.
    private func take(_ wave: Wave) -> [Output] {
        waves.withLock { waves in
            var outputs: [Output] = []
            var counts = slots.map { $0.countUpToLast(of: wave) }
            while counts.contains(where: { $0 > 0 }) {
                for index in slots.indices where counts[index] > 0 {
                    slots[index].advance()
                    counts[index] -= 1
                }
                if let output = combine() { outputs.append(output) }
            }
            waves.removeAll { $0.root === wave }
            return outputs
        }
    }
}

extension Join: Raising {
    func raise(to height: Int) { outlet.raise(to: height + 1) }
}

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
                for (output, _) in self.take(wave) { await self.outlet.emit(output, own) }
                await own.drain()
            }
        }
        for (output, part) in take(wave) { await outlet.emit(output, part) }
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

    /// The combinations that the wave makes, now that it is complete; each with the part of the wave that it comes from.
    ///
    /// The values of one part are taken together, so that each combination is of one moment.
    private func take(_ wave: Wave) -> [(Output, Wave)] {
        waves.withLock { waves in
            var outputs: [(Output, Wave)] = []
            var counts = slots.map { $0.countUpToLast(of: wave) }
            var part: Wave?
            while counts.contains(where: { $0 > 0 }) {
                part = nextPart(after: part, counts)
                for index in slots.indices where counts[index] > 0 {
                    // Where parts came in different orders to different slots, there is no moment of one of them alone.
                    if let part, slots[index].firstWave !== part { continue }
                    slots[index].advance()
                    counts[index] -= 1
                }
                guard let output = combine() else { continue }
                // A wave that is taken along does not know of it.
                outputs.append((output, part?.root === wave ? part! : wave))
            }
            waves.removeAll { $0.root === wave }
            return outputs
        }
    }

    /// A part that is first in each slot that it has brought values for; the last one as long as it has any.
    private func nextPart(after last: Wave?, _ counts: [Int]) -> Wave? {
        var candidates = last.map { [$0] } ?? []
        for index in slots.indices where counts[index] > 0 {
            if let first = slots[index].firstWave { candidates.append(first) }
        }
        return candidates.first { candidate in
            var isFirst = false
            for index in slots.indices where counts[index] > 0 {
                guard let position = slots[index].position(of: candidate), position < counts[index] else { continue }
                if position > 0 { return false }
                isFirst = true
            }
            return isFirst
        }
    }
}

extension Join: Raising {
    func raise(to height: Int) { outlet.raise(to: height + 1) }
}

internal import Synchronization

/// The place where several streams meet, whose newest values come out together.
///
/// A wave may reach it through several slots: their values are taken together when the wave fires the join, so no
/// combination of one wave's new value with its old one ever comes out. A slot that got several values in one wave gives
/// as many combinations. Waves that reach different slots do not wait for each other.
///
/// It begins when all slots are attached, and when the waves have been through that were under way at that moment above
/// several of them: what the slots hold may be what such a wave has left on one way and not yet changed on another.
final class Join<Output: Sendable>: Joining {
    let outlet = Outlet<Output>(height: 1)
    private enum Phase {
        /// Not all slots are attached.
        case building
        /// The waves have yet to fire the join.
        case waiting(for: [Wave], Gate)
        case begun
    }

    private struct Guarded {
        var phase = Phase.building
        /// The waves that have reached the join and not yet fired it.
        var waves: [Wave] = []
    }

    private let line = Line("changes an input of the combineLatest that it came from")
    /// What comes out when a wave fires the join: combinations, each with the part of the wave that it comes from.
    private struct Taken {
        var outputs: [(Output, Wave)] = []
        /// To be opened when they have come out: with them, the join begins.
        var begun: Gate?
    }

    private let guarded = Mutex(Guarded())
    private let slots: [any JoinSlot]
    /// The combination of what the slots hold, nil while one is empty; called under the lock.
    private let combine: @Sendable () -> Output?

    init(_ slots: [any JoinSlot], _ combine: @escaping @Sendable () -> Output?) {
        self.slots = slots
        self.combine = combine
    }

    var height: Int { outlet.height }

    /// The current value of the stream that one of the slots has just been attached to.
    func begin<Value>(with value: Value, in slot: Slot<Value>) {
        guarded.withLock { _ in slot.value = value }
    }

    /// All slots are attached to the streams.
    ///
    /// Returns when the join has begun; at once where something may wait for its caller: while a value is delivered.
    func begin(below streams: [any Upstream]) async {
        let building = Wave()
        // What has been taken in the meantime has come out, or been held back, before the first value comes out.
        _ = await line.enter(building.task)
        let common = CommonUpstreams(of: streams).waves
        let (first, gate) = guarded.withLock { guarded -> (Output?, Gate?) in
            // One that cannot be noted has come to its end, and with that has fired all that it has offered.
            let waves = common.filter { $0.fireLater(self) }
            if waves.isEmpty {
                guarded.phase = .begun
                return (combine(), nil)
            }
            let gate = Gate()
            guarded.phase = .waiting(for: waves, gate)
            return (nil, gate)
        }
        if let first { await building.run { await outlet.emit(first, building) } }
        line.leave()
        if let gate, !Wave.isInside { await gate.wait() }
    }

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
        if guarded.withLock({ _ in mergeIntoOlder(wave) }) { return }
        guard await line.enter(wave.task) else {
            return line.later {
                let own = Wave(from: self.outlet)
                await own.run { await self.emit(self.take(wave), in: own) }
            }
        }
        await emit(take(wave))
        line.leave()
    }

    private func emit(_ taken: Taken, in own: Wave? = nil) async {
        for (output, part) in taken.outputs { await outlet.emit(output, own ?? part) }
        taken.begun?.open()
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

    /// The combinations that the wave makes, now that it is complete; none while the join has not begun.
    ///
    /// The values of one part are taken together, so that each combination is of one moment.
    private func take(_ wave: Wave) -> Taken {
        guarded.withLock { guarded in
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
            guarded.waves.removeAll { $0.root === wave }
            switch guarded.phase {
            case .begun: return Taken(outputs: outputs)
            case .building: return Taken()
            case .waiting(for: var waves, let gate):
                waves.removeAll { $0.root === wave }
                guarded.phase = waves.isEmpty ? .begun : .waiting(for: waves, gate)
                guard waves.isEmpty else { return Taken() }
                return Taken(outputs: combine().map { [($0, wave)] } ?? [], begun: gate)
            }
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

extension Join: Downstream {
    func hang(below upstream: any Upstream) {
        outlet.hang(below: upstream)
        raiseAll(to: upstream.height)
    }

    func leave(_ upstream: any Upstream) { outlet.leave(upstream) }

    func raise(to height: Int) -> [(any Downstream, Int)] { outlet.raise(to: height + 1) }
}

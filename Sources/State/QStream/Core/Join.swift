internal import Synchronization

/// Combines the newest values of several streams.
///
/// A wave may reach a join through several slots. Their values are taken together when the wave fires the join, so a
/// combination never mixes a new value of a wave with an old one. A slot with several values in one wave yields as
/// many combinations. Waves that reach different slots do not wait for each other.
///
/// A join begins when all slots are attached, and all earlier waves above several of them have ended. Such a wave may
/// have changed one slot and not yet another.
final class Join<Output: Sendable>: Joining {
    let outlet = Outlet<Output>(height: 1)
    /// The phase of the join's beginning.
    private enum Phase {
        /// Not all slots are attached.
        case attaching
        /// These waves have yet to fire the join.
        case waiting(for: [Wave], Gate)
        case started
    }

    /// The state under the lock.
    private struct Guarded {
        var phase = Phase.attaching
        /// The waves that have reached the join and not yet fired it.
        var waves: [Wave] = []
    }

    private let queue = SerialTaskQueue("changes an input of the combineLatest that it came from")
    /// The result of a fired join: combinations, each with the part of the wave that it comes from.
    private struct Combination {
        var outputs: [(Output, Wave)] = []
        /// The gate to open after the emission of the outputs, which is the beginning of the join.
        var started: Gate?
    }

    private let guarded = Mutex(Guarded())
    private let slots: [any AnyJoinInput]
    /// Returns the combination of the slots' values, nil while one is empty. Called under the lock.
    private let combine: @Sendable () -> Output?

    init(_ slots: [any AnyJoinInput], _ combine: @escaping @Sendable () -> Output?) {
        self.slots = slots
        self.combine = combine
    }

    var height: Int { outlet.height }

    /// Stores the current value of the stream that `slot` has just been attached to.
    func setCurrentValue<Value>(with value: Value, in slot: JoinInput<Value>) {
        guarded.withLock { _ in slot.value = value }
    }

    /// Begins the join after all slots are attached to the streams.
    ///
    /// Returns when the join has begun. During the delivery of a value it returns at once, because another task may
    /// wait for its caller.
    func attach(below streams: [any Upstream]) async {
        let attaching = Wave()
        // The first value comes out after the values taken meanwhile, which have come out or been held back.
        _ = await queue.enter(attaching.task)
        let common = CommonUpstreams(of: streams).waves
        let (first, gate) = guarded.withLock { guarded -> (Output?, Gate?) in
            // A wave that does not accept the join has ended, and so has fired all its joins.
            let waves = common.filter { $0.fireLater(self) }
            if waves.isEmpty {
                guarded.phase = .started
                return (combine(), nil)
            }
            let gate = Gate()
            guarded.phase = .waiting(for: waves, gate)
            return (nil, gate)
        }
        if let first { await attaching.run { await outlet.emit(first, attaching) } }
        queue.leave()
        if let gate, !Wave.isInside { await gate.wait() }
    }

    /// Records a value that a wave has brought for a slot.
    func offer<Value>(_ value: Value, to slot: JoinInput<Value>, _ wave: Wave) {
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
        guard await queue.enter(wave.task) else {
            return queue.enqueue {
                let ownWave = Wave(from: self.outlet)
                await ownWave.run { await self.emit(self.combinations(of: wave), in: ownWave) }
            }
        }
        await emit(combinations(of: wave))
        queue.leave()
    }

    private func emit(_ combinations: Combination, in ownWave: Wave? = nil) async {
        for (output, part) in combinations.outputs { await outlet.emit(output, ownWave ?? part) }
        combinations.started?.open()
    }

    /// Merges the wave into an older one that has not fired and has a value in front of one of this wave's values.
    ///
    /// Firing at once would split the older wave; waiting could delay values that it needs. If merging is impossible
    /// (the older wave belongs to the same task, and waits for this one), the older wave's values here are taken
    /// along.
    private func mergeIntoOlder(_ wave: Wave) -> Bool {
        for slot in slots {
            if let older = slot.waveInFront(of: wave), wave.merge(into: older, at: self) { return true }
        }
        return false
    }

    /// Returns the combinations of the wave, which is complete now; none before the join has begun.
    ///
    /// The values of one part are taken together, so that each combination belongs to one moment.
    private func combinations(of wave: Wave) -> Combination {
        guarded.withLock { guarded in
            var outputs: [(Output, Wave)] = []
            var counts = slots.map { $0.countUpToLast(of: wave) }
            var part: Wave?
            while counts.contains(where: { $0 > 0 }) {
                part = nextPart(after: part, counts)
                for index in slots.indices where counts[index] > 0 {
                    // When parts came in different orders to different slots, no combination contains one part alone.
                    if let part, slots[index].firstWave !== part { continue }
                    slots[index].advance()
                    counts[index] -= 1
                }
                guard let output = combine() else { continue }
                // The wave is not the root of a value that was taken along.
                outputs.append((output, part?.root === wave ? part! : wave))
            }
            guarded.waves.removeAll { $0.root === wave }
            switch guarded.phase {
            case .started: return Combination(outputs: outputs)
            case .attaching: return Combination()
            case .waiting(for: var waves, let gate):
                waves.removeAll { $0.root === wave }
                guarded.phase = waves.isEmpty ? .started : .waiting(for: waves, gate)
                guard waves.isEmpty else { return Combination() }
                return Combination(outputs: combine().map { [($0, wave)] } ?? [], started: gate)
            }
        }
    }

    /// Returns a part that is first in each slot it has values for. Prefers the last part while it has values.
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
    func addUpstream(_ upstream: any Upstream) {
        outlet.addUpstream(upstream)
        raiseHeights(to: upstream.height)
    }

    func removeUpstream(_ upstream: any Upstream) { outlet.removeUpstream(upstream) }

    func raiseHeight(to height: Int) -> [(any Downstream, Int)] { outlet.raiseHeight(to: height + 1) }
}

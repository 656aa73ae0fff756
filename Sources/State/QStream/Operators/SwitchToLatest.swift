internal import Synchronization

extension Stream where Value: Stream {
    /// Returns the values of the newest stream that this stream has sent: its current value at once, then all that
    /// follow.
    ///
    ///     self              ─a─────────b──────────
    ///     a                 ───1───2───────3──────
    ///     b                 ─7───────────────8────
    ///     switchToLatest()  ───1───2───7─────8────
    ///
    /// The previous stream is released. While the newest has no current value, the result has none either.
    ///
    /// If a value is in delivery above the newest stream, the branch here comes out after that delivery, so that it
    /// meets matching values below. In this example, `tens` and `hundreds` have one source, whose 2 has passed `tens`
    /// and not yet `hundreds`:
    ///
    ///     tens                            ─10───20────────────────────
    ///     self                            ──────────tens──────────────
    ///     hundreds                        ─100──────────────200───────
    ///     combineLatest with `hundreds`   ──────────────────20/200────   (never 20/100)
    ///
    /// While values of several sources are in delivery and several tasks switch at once, a mixed combination is
    /// possible; a consistent one follows it. Preventing that would block all values above any of the streams during a
    /// switch, and a closure that sends during its delivery would wait for itself.
    nonisolated public func switchToLatest() async -> Streams.Derived<Value.Value> {
        let outlet: Outlet<Value.Value> = outletBelow()
        let switching = StreamSwitch(outlet)
        // The streams and the switch retain each other; this releases them with the chain.
        let release = Attachment { switching.release() }
        return await derive(into: outlet, additional: [release]) { stream, wave in
            await switching.attach(to: stream, wave)
        }
    }
}

extension Stream {
    /// Returns the values of the stream that `transform` returns for the newest value, or `default` for nil.
    ///
    ///     self                       ─nil───a────────nil──
    ///     transform(a)               ─1─────────2─────────
    ///     mapOptionalToLatest        ─0─────1───2────0────
    nonisolated public func mapOptionalToLatest<Wrapped: Sendable, Inner: Stream>(
        default defaultValue: Inner.Value, transform: @escaping @Sendable (Wrapped) async -> Inner
    ) async -> Streams.Derived<Inner.Value> where Value == Wrapped? {
        await map { value in
            if let value { await transform(value).any() } else { Streams.Constant(defaultValue).any() }
        }
        .switchToLatest()
    }
}

/// The number of the stream whose values pass without the switch's lock, because no wave is due; 0 for none.
private final class SettledStreamIndex: Sendable {
    let number = Atomic(0)
}

/// The newest stream, and its attachments.
///
/// Values may be in delivery above a chosen stream: some have passed it, but objects below the switch have yet to get
/// them on another path. Its current value is then emitted by the last of those waves, after everything above is done,
/// as in a `Join`: below, it meets matching values.
private final class StreamSwitch<Value: Sendable>: Joining {
    /// The newest stream and its waves, under the lock.
    private struct State: Sendable {
        var number = 0
        var attachments: [Attachment] = []
        var isReleased = false
        /// The current value of the newest stream.
        var current: (@Sendable () -> Value?)?
        /// True if a value of the newest stream has come, so that its current one need not be emitted.
        var hasReceivedValue = false
        /// The waves that have yet to fire the switch. The last one emits the current value.
        var pendingWaves: [Wave] = []

        /// Makes another stream the newest, or none. Returns the attachments of the previous one.
        mutating func replaceStream(with current: (@Sendable () -> Value?)?) -> (
            [Attachment], (@Sendable () -> Value?)?
        ) {
            let old = (attachments, self.current)
            number += 1
            attachments = []
            self.current = current
            hasReceivedValue = false
            pendingWaves = []
            return old
        }
    }

    private let outlet: Outlet<Value>
    private let queue = SerialTaskQueue("sends into the switchToLatest that it came from")
    private let state = OperatorState(State())
    private let settled = SettledStreamIndex()

    init(_ outlet: Outlet<Value>) { self.outlet = outlet }

    var height: Int { outlet.height }

    func attach(to stream: some Stream<Value>, _ wave: Wave) async {
        // No list of captures, with which the closure below would leave the sender's actor (Docs/Guides/QStream.md).
        let (this, queue, outlet, state, settled) = (
            Weak(self), self.queue, self.outlet, self.state, self.settled
        )
        let source = stream.outlet
        let (number, old) = state.withLock { state in
            let old = state.replaceStream { source.current }
            settled.number.store(0, ordering: .releasing)
            return (state.number, old)
        }
        withExtendedLifetime(old) {}
        // Checked before the attachment, so that a value that comes during it is not removed again.
        if source.current == nil { outlet.clear() }
        let new = await stream.attach(self, withCurrent: false, in: wave) { value, wave in
            if settled.number.load(ordering: .acquiring) != number,
                this.object?.mergeIntoPending(wave, of: number) == true
            {
                return
            }
            await queue.emit(value, from: outlet, wave) {
                settled.number.load(ordering: .acquiring) == number || state.withLock { $0.number == number }
            }
        }
        let emitsNow = state.withLock { state in
            // Not stored if a newer stream has come or the chain has been released meanwhile: released here, outside
            // the lock.
            guard state.number == number, !state.isReleased else { return false }
            state.attachments = new
            // Before the first stream, no values exist below. Waves are collected after the attachment, because a
            // later wave brings its value itself. A wave that does not accept the switch has ended.
            guard number > 1 else { return true }
            state.pendingWaves = CommonUpstreams(of: [source, source]).waves.filter { $0.fireLater(self) }
            return state.pendingWaves.isEmpty
        }
        if emitsNow { await emitCurrentValue(number, wave) }
    }

    /// Fires the switch after a wave above the newest stream has done everything above the switch.
    func fire(_ wave: Wave) async {
        let number = state.withLock { state -> Int? in
            guard !state.pendingWaves.isEmpty else { return nil }
            state.pendingWaves.removeAll { $0.root === wave }
            // The stream's value belongs to the other waves as well: they merge, or come out one by one.
            for other in state.pendingWaves where wave.merge(into: other, at: self) { return nil }
            return state.number
        }
        if let number { await emitCurrentValue(number, wave) }
    }

    /// Handles a value of a stream that a wave has brought. Returns true if the value is left to an older wave that
    /// has yet to emit the stream's current value: this wave is part of it from now on.
    private func mergeIntoPending(_ wave: Wave, of number: Int) -> Bool {
        state.withLock { state in
            guard state.number == number else { return false }
            if !state.pendingWaves.isEmpty, !state.pendingWaves.contains(where: { $0.root === wave.root }),
                wave.fireLater(self)
            {
                for other in state.pendingWaves where wave.merge(into: other, at: self) { return true }
            }
            state.hasReceivedValue = true
            // After the attachment, no more waves become due.
            if state.pendingWaves.isEmpty, !state.attachments.isEmpty {
                settled.number.store(number, ordering: .releasing)
            }
            return false
        }
    }

    /// Emits the current value of the newest stream, unless a value has come by itself.
    private func emitCurrentValue(_ number: Int, _ wave: Wave) async {
        guard let value = state.withLock({ $0.number == number ? $0.current : nil })?() else { return }
        await queue.emit(value, from: outlet, wave) { [state] in
            state.withLock { $0.number == number && !$0.hasReceivedValue }
        }
    }

    func release() {
        let old = state.withLock { state in
            state.isReleased = true
            return state.replaceStream(with: nil)
        }
        withExtendedLifetime(old) {}
    }
}

extension StreamSwitch: Downstream {
    /// The maximum height: a chosen stream may be below the switch itself, so that heights would grow without end.
    private var limit: Int { 1_000 }

    func addUpstream(_ upstream: any Upstream) {
        outlet.addUpstream(upstream)
        raiseHeights(to: upstream.height)
    }

    func removeUpstream(_ upstream: any Upstream) { outlet.removeUpstream(upstream) }

    func raiseHeight(to height: Int) -> [(any Downstream, Int)] {
        height < limit ? outlet.raiseHeight(to: height + 1) : []
    }
}

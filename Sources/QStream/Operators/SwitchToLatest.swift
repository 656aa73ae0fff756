internal import Synchronization

extension Stream where Value: Stream {
    /// The values of the newest stream that this stream has sent: its current value at once, then all that follow.
    ///
    ///     self              ─a─────────b──────────
    ///     a                 ───1───2───────3──────
    ///     b                 ─7───────────────8────
    ///     switchToLatest()  ───1───2───7─────8────
    ///
    /// A stream that is not the newest any more is let go. While the newest has no current value, there is none.
    ///
    /// Where a value is on its way above the newest stream, its branch here comes out when that value is through, so that below it meets
    /// what belongs to it. `tens` and `hundreds` are of one source, whose 2 is through the one and not yet through the other:
    ///
    ///     tens                            ─10───20────────────────────
    ///     self                            ──────────tens──────────────
    ///     hundreds                        ─100──────────────200───────
    ///     combineLatest with `hundreds`   ──────────────────20/200────   (never 20/100)
    ///
    /// While values of several sources are on their way and several tasks choose at once, a combination may mix now and then; a whole
    /// one comes after it. To exclude that, no value could begin above any of the streams while one is chosen, and a closure that sends
    /// while it is given a value would wait for itself.
    nonisolated public func switchToLatest() async -> Streams.Derived<Value.Value> {
        let outlet: Outlet<Value.Value> = outletBelow()
        let switching = Switch(outlet)
        // The streams switched to hold the switch and it holds them; this lets go of them when the chain goes.
        let release = Attachment { switching.release() }
        return await derive(into: outlet, also: [release]) { stream, wave in
            await switching.attach(to: stream, wave)
        }
    }
}

extension Stream {
    /// What the newest value makes of itself: the stream that `transform` gives for it, or `default` for nil.
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

/// The number of the stream whose values pass without the switch's lock, as it is known that no wave is due; 0 for none.
private final class Settled: Sendable {
    let number = Atomic(0)
}

/// Which stream is the newest, and what holds it.
///
/// A stream that is switched to may be one that values are on their way above of: some have passed it already, and places below the
/// switch have yet to get them by another way. What it has is then brought down by the last of the waves that they are part of, when
/// all above has been done, as with a `Join`: below, it meets what belongs to it.
private final class Switch<Value: Sendable>: Joining {
    private struct State: Sendable {
        var number = 0
        var attachments: [Attachment] = []
        var isReleased = false
        /// The current value of the newest stream.
        var current: (@Sendable () -> Value?)?
        /// Whether a value of the newest stream has come, so that its current one need not be brought.
        var hasCome = false
        /// The waves that have yet to fire the switch, the last of which brings the current value.
        var due: [Wave] = []

        /// Another stream is the newest, or none. Gives what held the one before.
        mutating func moveOn(to current: (@Sendable () -> Value?)?) -> ([Attachment], (@Sendable () -> Value?)?) {
            let old = (attachments, self.current)
            number += 1
            attachments = []
            self.current = current
            hasCome = false
            due = []
            return old
        }
    }

    private let outlet: Outlet<Value>
    private let line = Line("sends into the switchToLatest that it came from")
    private let state = Kept(State())
    private let settled = Settled()

    init(_ outlet: Outlet<Value>) { self.outlet = outlet }

    var height: Int { outlet.height }

    func attach(to stream: some Stream<Value>, _ wave: Wave) async {
        // No list of captures, with which the closure below would leave the sender's actor (Docs/QStream.md).
        let (this, line, outlet, state, settled) = (
            Weak(self), self.line, self.outlet, self.state, self.settled
        )
        let source = stream.outlet
        let (number, old) = state.withLock { state in
            let old = state.moveOn { source.current }
            settled.number.store(0, ordering: .releasing)
            return (state.number, old)
        }
        withExtendedLifetime(old) {}
        // Asked before, so that a value that comes while it is attached is not forgotten again.
        if source.current == nil { outlet.clear() }
        let new = await stream.attach(self, withCurrent: false, in: wave) { value, wave in
            if settled.number.load(ordering: .acquiring) != number, this.object?.leave(wave, of: number) == true {
                return
            }
            await line.emit(value, from: outlet, wave) {
                settled.number.load(ordering: .acquiring) == number || state.withLock { $0.number == number }
            }
        }
        let isDue = state.withLock { state in
            // Not stored when a newer stream has come or the chain has gone meanwhile: released here, outside the lock.
            guard state.number == number, !state.isReleased else { return false }
            state.attachments = new
            // Before the first stream there was nothing below that could meet it. Waves are looked for once it is attached: one that
            // begins later brings its value itself. One that cannot be noted has come to its end.
            guard number > 1 else { return true }
            state.due = CommonUpstreams(of: [source, source]).waves.filter { $0.fireLater(self) }
            return state.due.isEmpty
        }
        if isDue { await bring(number, wave) }
    }

    /// A wave above the newest stream has done all that is above the switch.
    func fire(_ wave: Wave) async {
        let number = state.withLock { state -> Int? in
            guard !state.due.isEmpty else { return nil }
            state.due.removeAll { $0.root === wave }
            // What the stream has is of the others as well: they come out together, or else one by one.
            for other in state.due where wave.merge(into: other, at: self) { return nil }
            return state.number
        }
        if let number { await bring(number, wave) }
    }

    /// A wave has brought a value of a stream. True when the value is left to an older wave, that has yet to bring the stream's current
    /// one: this one is part of it from now on.
    private func leave(_ wave: Wave, of number: Int) -> Bool {
        state.withLock { state in
            guard state.number == number else { return false }
            if !state.due.isEmpty, !state.due.contains(where: { $0.root === wave.root }), wave.fireLater(self) {
                for other in state.due where wave.merge(into: other, at: self) { return true }
            }
            state.hasCome = true
            // Once it is attached, no more waves become due.
            if state.due.isEmpty, !state.attachments.isEmpty { settled.number.store(number, ordering: .releasing) }
            return false
        }
    }

    /// Emits the current value of the newest stream, unless one has come by itself.
    private func bring(_ number: Int, _ wave: Wave) async {
        guard let value = state.withLock({ $0.number == number ? $0.current : nil })?() else { return }
        await line.emit(value, from: outlet, wave) { [state] in
            state.withLock { $0.number == number && !$0.hasCome }
        }
    }

    func release() {
        let old = state.withLock { state in
            state.isReleased = true
            return state.moveOn(to: nil)
        }
        withExtendedLifetime(old) {}
    }
}

extension Switch: Downstream {
    /// A stream that is chosen may stand below the switch itself; then no height is above all.
    private var limit: Int { 1_000 }

    func hang(below upstream: any Upstream) {
        outlet.hang(below: upstream)
        raiseAll(to: upstream.height)
    }

    func leave(_ upstream: any Upstream) { outlet.leave(upstream) }

    func raise(to height: Int) -> [(any Downstream, Int)] { height < limit ? outlet.raise(to: height + 1) : [] }
}

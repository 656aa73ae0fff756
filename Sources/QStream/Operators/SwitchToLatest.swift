extension Stream where Value: Stream {
    /// The values of the newest stream that this stream has sent: its current value at once, then all that follow.
    ///
    ///     self              ─a─────────b──────────
    ///     a                 ───1───2───────3──────
    ///     b                 ─7───────────────8────
    ///     switchToLatest()  ───1───2───7─────8────
    ///
    /// A stream that is not the newest any more is let go. While the newest has no current value, there is none.
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

/// Which stream is the newest, and what holds it.
private final class Switch<Value: Sendable>: Sendable {
    private struct State {
        var number = 0
        var attachments: [Attachment] = []
        var isReleased = false
    }

    private let outlet: Outlet<Value>
    private let line = Line("sends into the switchToLatest that it came from")
    private let state = Kept(State())

    init(_ outlet: Outlet<Value>) { self.outlet = outlet }

    func attach(to stream: some Stream<Value>, _ wave: Wave) async {
        let (number, old) = state.withLock { state in
            state.number += 1
            let old = state.attachments
            state.attachments = []
            return (state.number, old)
        }
        withExtendedLifetime(old) {}
        // Asked before, so that a value that comes while it is attached is not forgotten again.
        if stream.outlet.current == nil { outlet.clear() }
        let new = await stream.attach(outlet, in: wave) { [line, outlet, state] value, wave in
            await line.emit(value, from: outlet, wave) { state.withLock { $0.number == number } }
        }
        // Not stored when a newer stream has come or the chain has gone meanwhile: released here, outside the lock.
        state.withLock { state in
            if state.number == number, !state.isReleased { state.attachments = new }
        }
    }

    func release() {
        let old = state.withLock { state in
            state.isReleased = true
            state.number += 1
            let old = state.attachments
            state.attachments = []
            return old
        }
        withExtendedLifetime(old) {}
    }
}

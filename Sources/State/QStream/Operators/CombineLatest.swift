extension Stream {
    /// Implements the overloads of `combineLatest`, for any number of streams.
    ///
    /// The name differs because the type checker handles overloads with plain tuples better.
    nonisolated func combine<each Other: Stream>(
        _ others: repeat each Other
    ) async -> Streams.Derived<(Value, repeat (each Other).Value)> {
        let first = makeSlot()
        let otherSlots = (repeat (each others).makeSlot())
        var slots: [any AnyJoinInput] = [first]
        repeat slots.append(each otherSlots)

        let join = Join<(Value, repeat (each Other).Value)>(slots) {
            try? (first.filled(), repeat (each otherSlots).filled())
        }
        var attachments = await join.attach(self, first)
        repeat attachments += await join.attach(each others, each otherSlots)
        var inputs: [any Upstream] = [outlet]
        repeat inputs.append((each others).outlet)
        await join.attach(below: inputs)
        return Streams.Derived(join.outlet, attachments)
    }
}

extension Stream {
    fileprivate nonisolated func makeSlot() -> JoinInput<Value> { JoinInput() }
}

extension Collection where Element: Stream, Self: Sendable {
    /// Returns the newest values of all the streams, in their order, whenever one of them changes.
    ///
    ///     a                       ─1─────────2────────────
    ///     b                       ───7──────────────8─────
    ///     [a, b].combineLatest()  ───[1,7]───[2,7]──[2,8]─
    ///
    /// The result begins when each stream has a value. An empty collection gives a constant empty array.
    public func combineLatest() async -> Streams.Derived<[Element.Value]> {
        let slots = map { _ in JoinInput<Element.Value>() }
        guard !slots.isEmpty else { return Streams.Derived(Outlet([]), []) }
        let join = Join<[Element.Value]>(slots) {
            let values = slots.compactMap(\.value)
            return values.count == slots.count ? values : nil
        }
        var attachments: [Attachment] = []
        for (stream, slot) in zip(self, slots) { attachments += await join.attach(stream, slot) }
        await join.attach(below: map(\.outlet))
        return Streams.Derived(join.outlet, attachments)
    }
}

extension Join {
    fileprivate func attach<S: Stream>(_ stream: S, _ slot: JoinInput<S.Value>) async -> [Attachment] {
        await stream.attach(self, first: { value, _ in self.setCurrentValue(with: value, in: slot) }) { value, wave in
            self.offer(value, to: slot, wave)
        }
    }
}

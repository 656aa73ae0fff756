extension Streams {
    /// What an operator returns: a stream that is made of other streams, and keeps them alive.
    public actor Derived<Value: Sendable>: Stream {
        /// Where the operator's values come out.
        nonisolated public let outlet: Outlet<Value>
        private nonisolated let attachments: [Attachment]

        init(_ outlet: Outlet<Value>, _ attachments: [Attachment]) {
            self.outlet = outlet
            self.attachments = attachments
        }
    }
}

extension Stream {
    /// Puts an operator below this stream.
    ///
    /// - Parameters:
    ///   - outlet: where the operator's values come out; by default one that keeps its value.
    ///   - withCurrent: whether the operator begins with the current value.
    ///   - first: what it does with that, where it is not the same.
    ///   - also: what ends with the operator.
    @usableFromInline
    nonisolated func derive<Output>(
        into outlet: Outlet<Output>, withCurrent: Bool = true, first: Inlet<Value>.Sink? = nil,
        also: [Attachment] = [], _ sink: @escaping Inlet<Value>.Sink
    ) async -> Streams.Derived<Output> {
        Streams.Derived(outlet, await attach(outlet, withCurrent: withCurrent, first: first, sink) + also)
    }

    /// Attaches a sink of the operator that `destination` belongs to.
    nonisolated func attach(
        _ destination: any Downstream, withCurrent: Bool = true, first: Inlet<Value>.Sink? = nil, in wave: Wave? = nil,
        _ sink: @escaping Inlet<Value>.Sink
    ) async -> [Attachment] {
        let inlet = Inlet(into: destination, first: first, sink)
        let attachment = Attachment(inlet, to: self)
        destination.hang(below: outlet)
        await outlet.attach(inlet, withCurrent: withCurrent, in: wave)
        return [attachment]
    }

    /// An outlet for an operator below this stream.
    @usableFromInline
    nonisolated func outletBelow<Output>(keepsValue: Bool = true) -> Outlet<Output> {
        Outlet(keepsValue: keepsValue, height: outlet.height)
    }
}

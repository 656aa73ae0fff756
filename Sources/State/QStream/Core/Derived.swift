extension Streams {
    /// The result of an operator: a stream that is derived from other streams, and keeps them alive.
    public actor Derived<Value: Sendable>: Stream {
        /// The outlet of the operator's values.
        nonisolated public let outlet: Outlet<Value>
        private nonisolated let attachments: [Attachment]

        init(_ outlet: Outlet<Value>, _ attachments: [Attachment]) {
            self.outlet = outlet
            self.attachments = attachments
        }
    }
}

extension Stream {
    /// Adds an operator below this stream.
    ///
    /// - Parameters:
    ///   - outlet: the outlet of the operator's values; by default one that keeps its value.
    ///   - withCurrent: whether the operator begins with the current value.
    ///   - first: the sink of the current value, if it differs from `sink`.
    ///   - additional: further attachments that end with the operator.
    @usableFromInline
    nonisolated func derive<Output>(
        into outlet: Outlet<Output>, withCurrent: Bool = true, first: Inlet<Value>.Sink? = nil,
        additional: [Attachment] = [], _ sink: @escaping Inlet<Value>.Sink
    ) async -> Streams.Derived<Output> {
        Streams.Derived(outlet, await attach(outlet, withCurrent: withCurrent, first: first, sink) + additional)
    }

    /// Attaches a sink of the operator that `destination` belongs to.
    nonisolated func attach(
        _ destination: any Downstream, withCurrent: Bool = true, first: Inlet<Value>.Sink? = nil, in wave: Wave? = nil,
        _ sink: @escaping Inlet<Value>.Sink
    ) async -> [Attachment] {
        let inlet = Inlet(into: destination, first: first, sink)
        let attachment = Attachment(inlet, to: self)
        destination.addUpstream(outlet)
        await outlet.attach(inlet, withCurrent: withCurrent, in: wave)
        return [attachment]
    }

    /// Returns an outlet for an operator below this stream.
    @usableFromInline
    nonisolated func outletBelow<Output>(keepsValue: Bool = true) -> Outlet<Output> {
        Outlet(keepsValue: keepsValue, height: outlet.height)
    }
}

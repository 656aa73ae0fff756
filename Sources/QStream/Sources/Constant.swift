extension Streams {
    /// A stream whose value never changes.
    public actor Constant<Value: Sendable>: Stream {
        /// Where the value is; nothing is ever sent.
        nonisolated public let outlet: Outlet<Value>

        /// - Parameter value: current for as long as the stream is there.
        public init(_ value: Value) { outlet = Outlet(value) }
    }
}

extension Stream {
    /// A stream whose value never changes.
    nonisolated public static func constant<Constant>(_ value: Constant) -> Self
    where Self == Streams.Constant<Constant> {
        Streams.Constant(value)
    }
}

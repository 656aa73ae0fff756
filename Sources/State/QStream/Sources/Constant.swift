extension Streams {
    /// A stream whose value never changes.
    public actor Constant<Value: Sendable>: Stream {
        /// The outlet with the value. It never emits.
        nonisolated public let outlet: Outlet<Value>

        /// Creates a stream with a constant value.
        ///
        /// - Parameter value: current during the lifetime of the stream.
        public init(_ value: Value) { outlet = Outlet(value) }
    }
}

extension Stream {
    /// Returns a stream whose value never changes.
    nonisolated public static func constant<Constant>(_ value: Constant) -> Self
    where Self == Streams.Constant<Constant> {
        Streams.Constant(value)
    }
}

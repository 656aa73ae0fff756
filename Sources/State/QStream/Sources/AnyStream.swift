/// A type-erased stream; ``Stream/any()`` creates one.
///
/// It adds no cost per value, because it has the same outlet.
public actor AnyStream<Value: Sendable>: Stream {
    /// The outlet of the erased stream.
    nonisolated public let outlet: Outlet<Value>
    private nonisolated let stream: any Actor

    /// Creates a stream that keeps `stream` alive.
    public init(_ stream: some Stream<Value>) {
        outlet = stream.outlet
        self.stream = stream
    }
}

extension Stream {
    /// Returns the same stream without its type.
    nonisolated public func any() -> AnyStream<Value> { AnyStream(self) }
}

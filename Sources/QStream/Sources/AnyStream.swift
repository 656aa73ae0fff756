/// A stream whose kind is nobody's business; ``Stream/any()`` makes one.
///
/// It costs nothing per value: it is the same outlet.
public actor AnyStream<Value: Sendable>: Stream {
    /// That of the stream whose kind it hides.
    nonisolated public let outlet: Outlet<Value>
    private nonisolated let stream: any Actor

    /// Keeps the stream alive.
    public init(_ stream: some Stream<Value>) {
        outlet = stream.outlet
        self.stream = stream
    }
}

extension Stream {
    /// The same stream without its type.
    nonisolated public func any() -> AnyStream<Value> { AnyStream(self) }
}

import Synchronization

/// A shared generator of random numbers: `withRandomNumberGenerator { Int.random(in: 1...6, using: &$0) }`.
public final class WithRandomNumberGenerator: Sendable {
    private let generator: Mutex<any RandomNumberGenerator & Sendable>

    /// Wraps a generator.
    ///
    /// - Parameter generator: used by one caller at a time.
    public init(_ generator: some RandomNumberGenerator & Sendable) { self.generator = Mutex(generator) }

    /// Runs work with the generator. The work must not use this object again.
    public func callAsFunction<Result: Sendable>(
        _ work: (inout any RandomNumberGenerator & Sendable) throws -> Result
    ) rethrows -> Result {
        try generator.withLock { try work(&$0) }
    }
}

extension DependencyValues {
    /// Random numbers. A test must provide them: a `WithRandomNumberGenerator` with a deterministic generator.
    public var withRandomNumberGenerator: WithRandomNumberGenerator {
        get { self[RandomKey.self] }
        set { self[RandomKey.self] = newValue }
    }
}

/// The key of ``DependencyValues/withRandomNumberGenerator``.
private enum RandomKey: DependencyKey {
    static let liveValue = WithRandomNumberGenerator(SystemRandomNumberGenerator())
    static var testValue: WithRandomNumberGenerator { WithRandomNumberGenerator(Unimplemented()) }

    /// A generator whose use fails the test.
    private struct Unimplemented: RandomNumberGenerator, Sendable {
        func next() -> UInt64 {
            DependencyValues.reportUnimplemented(
                "Unimplemented: withRandomNumberGenerator. Give it a value with 'withDependencies'.")
            var system = SystemRandomNumberGenerator()
            return system.next()
        }
    }
}

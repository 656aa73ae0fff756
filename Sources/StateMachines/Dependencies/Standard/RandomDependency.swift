import Synchronization

/// A generator of random numbers that many may use: `withRandomNumberGenerator { Int.random(in: 1...6, using: &$0) }`.
public final class WithRandomNumberGenerator: Sendable {
    private let generator: Mutex<any RandomNumberGenerator & Sendable>

    /// - Parameter generator: used by one at a time.
    public init(_ generator: some RandomNumberGenerator & Sendable) { self.generator = Mutex(generator) }

    /// Runs work with the generator; it must not use this object again.
    public func callAsFunction<Result: Sendable>(
        _ work: (inout any RandomNumberGenerator & Sendable) throws -> Result
    ) rethrows -> Result {
        try generator.withLock { try work(&$0) }
    }
}

extension DependencyValues {
    /// Random numbers. In a test they have to be given: a `WithRandomNumberGenerator` of a generator that always says the same.
    public var withRandomNumberGenerator: WithRandomNumberGenerator {
        get { self[RandomKey.self] }
        set { self[RandomKey.self] = newValue }
    }
}

private enum RandomKey: DependencyKey {
    static let liveValue = WithRandomNumberGenerator(SystemRandomNumberGenerator())
    static var testValue: WithRandomNumberGenerator { WithRandomNumberGenerator(Unimplemented()) }

    private struct Unimplemented: RandomNumberGenerator, Sendable {
        func next() -> UInt64 {
            DependencyValues.reportUnimplemented(
                "Unimplemented: withRandomNumberGenerator. Give it a value with 'withDependencies'.")
            var system = SystemRandomNumberGenerator()
            return system.next()
        }
    }
}

/// The order of concurrent results.
public enum ConcurrentOrder: Sendable, Hashable {
    /// The order of the elements.
    case preserving
    /// The order of completion.
    case completion
}

extension Sequence where Element: Sendable {
    /// Calls `body` with all elements concurrently, and returns when all calls have returned.
    public func forEachConcurrent(_ body: @escaping @concurrent @Sendable (Element) async -> Void) async {
        await withTaskGroup(of: Void.self) { group in
            for element in self { group.addTask { await body(element) } }
        }
    }

    /// Calls `body` with all elements concurrently, and returns when all calls have returned.
    ///
    /// The first error cancels the rest and is thrown.
    public func forEachConcurrent(_ body: @escaping @concurrent @Sendable (Element) async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for element in self { group.addTask { try await body(element) } }
            try await group.waitForAll()
        }
    }

    /// Returns the elements, all transformed concurrently.
    public func mapConcurrent<Output: Sendable>(
        orderBy order: ConcurrentOrder = .preserving,
        _ transform: @escaping @concurrent @Sendable (Element) async -> Output
    ) async -> [Output] {
        await withTaskGroup(of: (Int, Output).self) { group in
            for (index, element) in enumerated() { group.addTask { (index, await transform(element)) } }
            var outputs: [(Int, Output)] = []
            for await output in group { outputs.append(output) }
            return order.arrange(outputs)
        }
    }

    /// Returns the elements, all transformed concurrently. The first error cancels the rest and is thrown.
    public func mapConcurrent<Output: Sendable>(
        orderBy order: ConcurrentOrder = .preserving,
        _ transform: @escaping @concurrent @Sendable (Element) async throws -> Output
    ) async throws -> [Output] {
        try await withThrowingTaskGroup(of: (Int, Output).self) { group in
            for (index, element) in enumerated() { group.addTask { (index, try await transform(element)) } }
            var outputs: [(Int, Output)] = []
            for try await output in group { outputs.append(output) }
            return order.arrange(outputs)
        }
    }
}

extension Dictionary where Key: Sendable, Value: Sendable {
    /// Returns the same keys with their values, all transformed concurrently.
    public func mapValuesConcurrent<Output: Sendable>(
        _ transform: @escaping @concurrent @Sendable (Value) async -> Output
    ) async -> [Key: Output] {
        let pairs = await map { ($0.key, $0.value) }.mapConcurrent(orderBy: .completion) { pair in
            (pair.0, await transform(pair.1))
        }
        return Dictionary<Key, Output>(uniqueKeysWithValues: pairs)
    }
}

extension ConcurrentOrder {
    fileprivate func arrange<Output>(_ outputs: [(Int, Output)]) -> [Output] {
        let arranged = self == .preserving ? outputs.sorted { $0.0 < $1.0 } : outputs
        return arranged.map(\.1)
    }
}

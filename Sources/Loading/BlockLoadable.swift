/// A loader around a closure.
///
///     let loader = BlockLoadable { try await todoList.all() }
public final class BlockLoadable<Value: Hashable & Sendable>: BaseLoadable<Value> {
    private let block: @MainActor () async throws -> Value

    public init(_ block: @escaping @MainActor () async throws -> Value) { self.block = block }

    public override func fetch() async throws -> Value { try await block() }
}

/// A named value that lives as long as the store; see ``SharedReaderKey/inMemory(_:)``.
public struct InMemoryKey<Value: Sendable>: SharedKey {
    /// The name. Values of different types under one name are distinct.
    public struct ID: Hashable, Sendable {
        let name: String
    }

    /// The name: keys with the same name and type share their value.
    public let id: ID

    /// Loads the earlier value in this store. If there is none, the initial value of the first wrapper is stored.
    public func load(context: LoadContext<Value>, continuation: LoadContinuation<Value>) {
        continuation.resume(with: .success(SharedStore.current.memory.value(of: id, orStore: context.initialValue)))
    }

    /// Returns an empty subscription: all wrappers share the value, which has no external changes.
    public func subscribe(context: LoadContext<Value>, subscriber: SharedSubscriber<Value>) -> SharedSubscription {
        SharedSubscription()
    }

    /// Stores the value at once.
    public func save(_ value: Value, context: SaveContext, continuation: SaveContinuation) {
        SharedStore.current.memory.set(value, of: id)
        continuation.resume()
    }
}

extension InMemoryKey: CustomStringConvertible {
    public var description: String { ".inMemory(\(String(reflecting: id.name)))" }
}

extension SharedReaderKey {
    /// Stores the value, including the initial one, in memory, even while there is no wrapper. It ends with the
    /// process.
    public static func inMemory<Value>(_ name: String) -> Self where Self == InMemoryKey<Value> {
        InMemoryKey(id: InMemoryKey.ID(name: name))
    }
}

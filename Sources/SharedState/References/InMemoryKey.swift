/// A value that lives as long as the store, under a name; see ``SharedReaderKey/inMemory(_:)``.
public struct InMemoryKey<Value: Sendable>: SharedKey {
    /// The name; the type of the value tells apart what has the same name.
    public struct ID: Hashable, Sendable {
        let name: String
    }

    /// The name: keys of one name and one type share their value.
    public let id: ID

    /// The value of before in this store; with none, the one that the first wrapper begins with is kept from then on.
    public func load(context: LoadContext<Value>, continuation: LoadContinuation<Value>) {
        continuation.resume(with: .success(SharedStore.current.memory.value(of: id, orKeep: context.initialValue)))
    }

    /// All wrappers share the value already, and nobody else changes it.
    public func subscribe(context: LoadContext<Value>, subscriber: SharedSubscriber<Value>) -> SharedSubscription {
        SharedSubscription()
    }

    /// Keeps the value in the store, at once.
    public func save(_ value: Value, context: SaveContext, continuation: SaveContinuation) {
        SharedStore.current.memory.set(value, of: id)
        continuation.resume()
    }
}

extension InMemoryKey: CustomStringConvertible {
    public var description: String { ".inMemory(\(String(reflecting: id.name)))" }
}

extension SharedReaderKey {
    /// Keeps the value in memory, the initial one too, also while no wrapper holds it. It is gone with the process.
    public static func inMemory<Value>(_ name: String) -> Self where Self == InMemoryKey<Value> {
        InMemoryKey(id: InMemoryKey.ID(name: name))
    }
}

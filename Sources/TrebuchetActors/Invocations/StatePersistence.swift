internal import Distributed
internal import TrebuchetWire

/// How a persisted state is set to what was kept of it.
struct StatePersistence<A: DistributedActor>: Sendable {
    typealias Apply = @Sendable (isolated A) -> Void

    /// `state`
    let property: String
    /// Decodes what was kept, and gives what sets the property to it.
    let decode: @Sendable (UnsafeRawBufferPointer, ValueCoder) throws -> Apply

    init<Value: Codable & Sendable>(property: String, _ load: @escaping @Sendable (isolated A, Value) -> Void) {
        self.property = property
        decode = { bytes, coder in
            let value = try coder.decode(Value.self, from: bytes)
            return { actor in load(actor, value) }
        }
    }
}

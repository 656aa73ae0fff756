internal import Bytes
public import Distributed
internal import TrebuchetWire

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// An actor whose state can be observed by name. `@Trebuchet` generates the conformance. Implement `_getStream(for:)` yourself
/// for an actor with custom streams.
public protocol StreamingActor: DistributedActor where ActorSystem == TrebuchetActorSystem {
    /// Returns the encoded values of a streamed property, the current one first; nil if there is no such property.
    /// `propertyName` is the name of the property (`state`) or of its stream (`observeState`).
    func _getStream(for propertyName: String) async -> AsyncStream<Data>?
}

extension StreamingActor where Self: TrebuchetActor {
    public func _getStream(for propertyName: String) async -> AsyncStream<Data>? {
        let streamName = StreamName.ofProperty(propertyName)
        let found = Self.dispatch.streams.first { $0.name == propertyName || $0.name == streamName }
        return found.map { EncodedValues.of(self, $0) }
    }
}

/// The JSON values of a stream: the newest value of a state, or each event with at most 256 unread ones.
private enum EncodedValues {
    static func of<A: TrebuchetActor>(_ actor: A, _ stream: _DispatchStream<A>) -> AsyncStream<Data> {
        func open<Value: Codable & Sendable>(_ type: Value.Type) -> AsyncStream<Data> {
            guard stream.isState else {
                return encoded(.bufferingOldest(256)) { await EventObservation<A, Value>(actor, stream.name)() }
            }
            return encoded(.bufferingNewest(1)) { await StateObservation<A, Value>(actor, stream.name)() }
        }
        return open(stream.valueType)
    }

    private static func encoded<Values: AsyncSequence & SendableMetatype>(
        _ policy: AsyncStream<Data>.Continuation.BufferingPolicy, _ values: @escaping @Sendable () async -> Values
    ) -> AsyncStream<Data> where Values.Element: Encodable, Values.AsyncIterator: SendableMetatype {
        AsyncStream(bufferingPolicy: policy) { continuation in
            let task = Task {
                let coder = ValueCoder()
                var values = await values().makeAsyncIterator()
                while let value = try? await values.next() {
                    var buffer = ByteBuffer()
                    guard (try? coder.encode(value, into: &buffer)) != nil else { break }
                    // A dropped event is lost, so the stream must not continue without it.
                    let outcome = continuation.yield(Data(buffer.bytes))
                    if case .dropped = outcome, case .bufferingOldest = policy { break }
                }
                continuation.finish()
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }
}

/// Converts names of streams.
enum StreamName {
    /// Returns the stream name of a property: `gameState` → `observeGameState`.
    static func ofProperty(_ name: String) -> String { "observe" + name.prefix(1).uppercased() + name.dropFirst() }
}

public import Distributed

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// An actor whose state can be observed by name. `@Trebuchet` writes the conformance; write `_getStream(for:)` yourself
/// for an actor that makes its streams in a way of its own.
public protocol StreamingActor: DistributedActor where ActorSystem == TrebuchetActorSystem {
    /// The encoded values of a streamed property, the current one first; nil when there is no such property.
    /// `propertyName` is the name of the property (`state`) or of its stream (`observeState`).
    func _getStream(for propertyName: String) async -> AsyncStream<Data>?
}

extension StreamingActor where Self: TrebuchetActor {
    public func _getStream(for propertyName: String) async -> AsyncStream<Data>? {
        let streamName = StreamName.ofProperty(propertyName)
        let found = Self.dispatch.streams.first { $0.name == propertyName || $0.name == streamName }
        return found.map { $0.encodedValues(self) }
    }
}

enum StreamName {
    /// `gameState` → `observeGameState`
    static func ofProperty(_ name: String) -> String { "observe" + name.prefix(1).uppercased() + name.dropFirst() }
}

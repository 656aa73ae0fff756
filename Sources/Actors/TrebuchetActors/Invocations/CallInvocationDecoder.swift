public import Distributed

/// The decoder that `DistributedActorSystem` requires. It has no instances: calls are found in dispatch tables and not by the Swift
/// runtime.
@_documentation(visibility: internal)
public struct CallInvocationDecoder: DistributedTargetInvocationDecoder {
    public typealias SerializationRequirement = any (Codable & Sendable)

    /// The error of methods that are never called.
    private struct NoInstances: Error {}

    private init() {}

    public mutating func decodeGenericSubstitutions() throws -> [any Any.Type] { throw NoInstances() }
    public mutating func decodeNextArgument<Argument: Codable & Sendable>() throws -> Argument { throw NoInstances() }
    public mutating func decodeErrorType() throws -> (any Any.Type)? { nil }
    public mutating func decodeReturnType() throws -> (any Any.Type)? { nil }
}

/// The handler of results that `DistributedActorSystem` requires. It has no instances, like `CallInvocationDecoder`.
@_documentation(visibility: internal)
public struct CallResultHandler: DistributedTargetInvocationResultHandler {
    public typealias SerializationRequirement = any (Codable & Sendable)

    private init() {}

    public func onReturn<Success: Codable & Sendable>(value: Success) async throws {}
    public func onReturnVoid() async throws {}
    public func onThrow<Failure: Error>(error: Failure) async throws {}
}

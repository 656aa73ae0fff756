internal import Bytes
public import Distributed
internal import TrebuchetWire

/// Collects the parts of a distributed call. Each argument is encoded when it is recorded.
@_documentation(visibility: internal)
public struct CallInvocationEncoder: DistributedTargetInvocationEncoder {
    public typealias SerializationRequirement = any (Codable & Sendable)

    private let coder: ValueCoder
    private var arguments: [[UInt8]] = []
    private var generics: [String] = []

    init(coder: ValueCoder) { self.coder = coder }

    public mutating func recordGenericSubstitution<Value>(_ type: Value.Type) throws {
        generics.append(GenericTypes.name(of: type))
    }

    public mutating func recordArgument<Value: Codable & Sendable>(_ argument: RemoteCallArgument<Value>) throws {
        var buffer = ByteBuffer()
        do {
            try coder.encode(argument.value, into: &buffer)
        } catch {
            throw TrebuchetError(
                .invalidArguments, "argument '\(argument.effectiveLabel)' cannot be encoded: \(describe(error))")
        }
        arguments.append(Array(buffer.bytes))
    }

    public mutating func recordReturnType<Value: Codable & Sendable>(_ type: Value.Type) throws {}
    public mutating func recordErrorType<Failure: Error>(_ type: Failure.Type) throws {}
    public mutating func doneRecording() throws {}

    /// Returns the request, with the generic arguments of the method only. The runtime records those of the actor type first,
    /// and the actor on the server already has them. The stub of a `@Resolvable` protocol is generic over itself; the method
    /// behind it is not.
    package func finish<Act: DistributedActor>(on type: Act.Type, _ method: RemoteMethod) -> CallRequest {
        if let own = method.generics { return CallRequest(arguments: arguments, generics: Array(generics.suffix(own))) }
        let isStub = !generics.isEmpty && TargetNames.isStub(type) && generics[0] == GenericTypes.name(of: type)
        return CallRequest(arguments: arguments, generics: isStub ? Array(generics.dropFirst()) : generics)
    }

    package func releaseCoder(to system: TrebuchetActorSystem) { system.releaseCoder(coder) }
}

/// The encoded arguments of a call and the names of its generic arguments.
package struct CallRequest: Sendable {
    package let arguments: [[UInt8]]
    package let generics: [String]

    package init(arguments: [[UInt8]], generics: [String]) {
        self.arguments = arguments
        self.generics = generics
    }
}

public import Distributed
internal import TrebuchetWire

/// The arguments of a call, in the form that `executeDistributedTarget` requires.
///
/// `@unchecked Sendable`: it owns its bytes and is passed from the session to the one task that runs the call.
@_documentation(visibility: internal)
public struct CallInvocationDecoder: DistributedTargetInvocationDecoder, @unchecked Sendable {
    public typealias SerializationRequirement = any (Codable & Sendable)

    private let arguments: [[UInt8]]
    private let genericNames: [String]
    private let coder: ValueCoder
    private var index = 0

    init(arguments: [[UInt8]], genericNames: [String], coder: ValueCoder) {
        self.arguments = arguments
        self.genericNames = genericNames
        self.coder = coder
    }

    public mutating func decodeGenericSubstitutions() throws -> [any Any.Type] {
        try genericNames.map { try GenericTypes.type(named: $0) }
    }

    public mutating func decodeNextArgument<Argument: Codable & Sendable>() throws -> Argument {
        guard index < arguments.count else {
            throw TrebuchetError(.invalidArguments, "argument \(index + 1) is missing")
        }
        defer { index += 1 }
        do {
            return try arguments[index].withUnsafeBytes { try coder.decode(Argument.self, from: $0) }
        } catch {
            throw TrebuchetError(.invalidArguments, "argument \(index + 1): \(describe(error))")
        }
    }

    public mutating func decodeErrorType() throws -> (any Any.Type)? { nil }
    public mutating func decodeReturnType() throws -> (any Any.Type)? { nil }
}

/// Receives the result of `executeDistributedTarget`.
///
/// `@unchecked Sendable`: written by the task that runs the call, and afterwards read by the same task.
@_documentation(visibility: internal)
public final class CallResultHandler: DistributedTargetInvocationResultHandler, @unchecked Sendable {
    public typealias SerializationRequirement = any (Codable & Sendable)

    private var result: Result<_CallResult, any Error> = .success(.void)

    public func onReturn<Success: Codable & Sendable>(value: Success) async throws {
        result = .success(try _CallResult(value))
    }

    public func onReturnVoid() async throws { result = .success(.void) }

    public func onThrow<Failure: Error>(error: Failure) async throws { result = .failure(error) }

    func outcome() throws -> _CallResult { try result.get() }
}

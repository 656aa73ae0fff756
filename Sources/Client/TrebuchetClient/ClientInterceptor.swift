/// Code that runs around each call of a client, and before each request of a stream: it sets metadata, measures, logs or repeats.
///
///     struct RequestIDs: ClientInterceptor {
///         func call(_ request: ClientRequest, next: ClientInterceptor.Next) async throws -> InterceptedResult {
///             var request = request
///             request.metadata["request-id"] = UUID().uuidString
///             return try await next(request)
///         }
///     }
///
/// Set them as `TrebuchetClient.Options.interceptors`. The first one is the outermost. Both functions have default implementations that
/// change nothing. Calls that the server makes to actors of the client are not intercepted.
public protocol ClientInterceptor: Sendable {
    /// Continues a call with the next interceptor, and at last sends it. Throws the error of the call: a `TrebuchetError`,
    /// or `CancellationError` if the task is cancelled.
    typealias Next = @Sendable (ClientRequest) async throws -> InterceptedResult

    /// Runs around a call, in the caller's task. The arguments are encoded already, and the result is decoded later, so neither can be
    /// changed.
    ///
    /// An error that it throws is the outcome of the call; without a call of `next` nothing is sent. Each call of `next` sends the call
    /// again: repeat a call only if its method permits that, since a call that ended with `timeout`, `cancelled` or `unknownOutcome` may
    /// have been executed. The client itself repeats calls of `@Idempotent` methods after a lost connection, inside one call of `next`.
    func call(_ request: ClientRequest, next: Next) async throws -> InterceptedResult

    /// Runs before a stream is requested, on the client's event loop, and again before each request over another connection
    /// (`ClientRequest.isResumed`). It must not block. An error that it throws ends the stream.
    func startStream(_ request: inout ClientRequest) throws(TrebuchetError)
}

extension ClientInterceptor {
    /// Sends the call unchanged.
    public func call(_ request: ClientRequest, next: Next) async throws -> InterceptedResult { try await next(request) }

    /// Accepts the stream unchanged.
    public func startStream(_ request: inout ClientRequest) throws(TrebuchetError) {}
}

/// A call or the request of a stream, as a `ClientInterceptor` sees it.
public struct ClientRequest: Sendable {
    /// The name of the actor.
    public let actor: String
    /// The name of the method or stream, such as `addTodo(title:)` or `observeState`.
    public let target: String
    /// A Boolean value that indicates whether the method is `@Idempotent`. False for a stream.
    public let isIdempotent: Bool
    /// A Boolean value that indicates whether a stream continues from a known position. False for a call and for a stream that has
    /// not started.
    public let isResumed: Bool
    /// The size of the encoded arguments in bytes; 0 for a stream.
    public let byteCount: Int
    /// The metadata to send: initially that of `CallMetadata.with`.
    public var metadata: CallMetadata
}

extension ClientCore {
    /// Sends a call through the interceptors.
    func interceptedCall(
        actorID: String, target: String, _ request: CallRequest, isIdempotent: Bool
    ) async throws -> [UInt8]? {
        var next: ClientInterceptor.Next = { intercepted in
            InterceptedResult(
                json: try await self.call(
                    actorID: actorID, target: target, request, isIdempotent: isIdempotent,
                    metadata: intercepted.metadata))
        }
        for interceptor in options.interceptors.reversed() {
            next = { [inner = next] in try await interceptor.call($0, next: inner) }
        }
        let byteCount = request.arguments.reduce(0) { $0 + $1.count }
        return try await next(
            ClientRequest(
                actor: actorID, target: target, isIdempotent: isIdempotent, isResumed: false, byteCount: byteCount,
                metadata: CallMetadata.sent)
        ).json
    }

    /// Returns the JSON of the metadata of a stream's request, as the interceptors set it.
    func metadata(of start: StreamRegistry.StartMode) throws(TrebuchetError) -> [UInt8]? {
        let (target, isResumed) =
            switch start {
            case .invocation(let target): (target, false)
            case .resumption(_, let target, _, _): (target, true)
            }
        guard !options.interceptors.isEmpty else { return try target.metadata.encoded() }
        var request = ClientRequest(
            actor: target.actorID, target: target.name, isIdempotent: false, isResumed: isResumed, byteCount: 0,
            metadata: target.metadata)
        for interceptor in options.interceptors { try interceptor.startStream(&request) }
        return try request.metadata.encoded()
    }
}

public import TrebuchetActors

/// Code of a server that runs around each call of a client, and before each stream: an audit log, a trace, a limit for each role.
///
///     struct AuditLog: ServerInterceptor {
///         func call(_ request: ServerRequest, next: ServerInterceptor.Next) async throws -> InterceptedResult {
///             do {
///                 let result = try await next(request)
///                 audit.info("\(request.principal?.id ?? "-") \(request.target) ok")
///                 return result
///             } catch {
///                 audit.info("\(request.principal?.id ?? "-") \(request.target) \(error)")
///                 throw error
///             }
///         }
///     }
///
/// Set them as `AccessPolicy.interceptors`. The first one is the outermost; `AccessPolicy.authorize` is checked inside the last one. An
/// interceptor that only accepts or refuses is an ``AdmissionInterceptor``, which costs no task.
///
/// - Interceptors run for the calls and streams of clients to actors and targets that exist. Calls of the server's own actors
///   (`Caller.isServer`) are not intercepted.
/// - Rates of callers are checked before `call` and `startStream`. A waiting call counts as an in-flight call, and its deadline and its
///   cancellation cancel the interceptor's task.
/// - In a cluster, calls and streams are intercepted by the node that has the actor. When the actor moves while a call waits for it, `next`
///   throws `unavailable`, and the next owner intercepts the call.
public protocol ServerInterceptor: Sendable {
    /// Continues a call with the next interceptor, and at last executes it. Throws the error of the call: the error of the method, or a
    /// `TrebuchetError`. A second call of `next` throws `internal`.
    typealias Next = @Sendable (ServerRequest) async throws -> InterceptedResult

    /// A Boolean value that indicates whether the interceptor reads `ServerRequest.arguments`. Default false.
    var readsArguments: Bool { get }

    /// Runs around a call. It starts on the connection's reactor, so it must not block. The response is sent when the outermost interceptor
    /// has returned.
    ///
    /// - An error that it throws is the outcome of the call for the client, as if the method had thrown it. Without a call of `next` the
    ///   method does not run.
    /// - The result cannot be changed. Only `metadata` of the request can.
    /// - `next` throws `CancellationError` when the connection closes.
    /// - Calls of a connection keep their order only if the interceptor does not suspend before `next`.
    /// - A repeat of an `@Idempotent` call is intercepted again, with `isRepeat`. `next` then returns the recorded outcome if there is one.
    func call(_ request: ServerRequest, next: Next) async throws -> InterceptedResult

    /// Runs before a stream starts or is resumed, also on the connection's reactor. An error that it throws refuses the stream. Streams that
    /// the server itself resumes, after their actor has moved, are not intercepted.
    func startStream(_ request: ServerRequest) async throws
}

extension ServerInterceptor {
    /// False: an interceptor that reads arguments says so.
    public var readsArguments: Bool { false }

    /// Continues the call unchanged.
    public func call(_ request: ServerRequest, next: Next) async throws -> InterceptedResult { try await next(request) }

    /// Accepts the stream.
    public func startStream(_ request: ServerRequest) async throws {}
}

/// An interceptor that accepts or refuses calls and streams at once: a check, or a limit.
///
///     struct Maintenance: AdmissionInterceptor {
///         let isActive = Atomic<Bool>(false)
///         func admit(_ request: ServerRequest) throws {
///             if isActive.load(ordering: .relaxed) { throw TrebuchetError(.unavailable, "maintenance until 14:00") }
///         }
///     }
///
/// If all interceptors are of this kind, calls take the same paths as without interceptors and keep their order.
public protocol AdmissionInterceptor: ServerInterceptor {
    /// Accepts a call or a stream by returning, and refuses it by throwing, with the same effect as in `call`. It runs on the connection's
    /// reactor or in another interceptor's task, and must not block.
    func admit(_ request: ServerRequest) throws
}

extension AdmissionInterceptor {
    /// Calls `admit`, then continues the call.
    public func call(_ request: ServerRequest, next: Next) async throws -> InterceptedResult {
        try admit(request)
        return try await next(request)
    }

    /// Calls `admit`.
    public func startStream(_ request: ServerRequest) async throws { try admit(request) }
}

/// A call or the start of a stream, as an interceptor of a server sees it.
public struct ServerRequest: Sendable {
    /// The kind of a request.
    public enum Kind: Sendable {
        /// A call of a method.
        case call
        /// The start or the resumption of a stream.
        case stream
    }

    /// The arguments of a call.
    public enum Arguments: Sendable, Equatable {
        /// A JSON array.
        case json([UInt8])
        /// The method is marked `@Redacted`, or its actor is not inspectable.
        case redacted
    }

    /// The kind of the request.
    public let kind: Kind
    /// The name of the actor.
    public let actor: String
    /// The name of the actor's Swift type.
    public let type: String
    /// The name of the method or stream, such as `addTodo(title:)` or `observeState`.
    public let target: String
    /// The caller: its principal and its connection. Nil only at a cluster node, for a client of a node without an `AccessPolicy`.
    public let caller: Caller?
    /// The number of the connection, as in log lines and events.
    public let connection: UInt64
    /// A Boolean value that indicates whether the client sends the call again, after a connection broke. False for a stream.
    public let isRepeat: Bool
    /// A Boolean value that indicates whether the client resumes a stream. False for a call.
    public let isResumed: Bool
    /// The time limit of the call, or of the wait for a stream.
    public let timeLimit: Duration
    /// The trace that the client has sent; nil without one.
    public let trace: TraceContext?
    /// The arguments of a call; nil for a stream, and if no interceptor has `readsArguments`.
    public let arguments: Arguments?
    /// The metadata. The method receives the values that the innermost interceptor passes to `next`.
    public var metadata: CallMetadata

    /// The principal of the caller; nil without one.
    public var principal: Principal? { caller?.principal }
}

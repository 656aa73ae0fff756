internal import Platform

/// A part of a trace that has ended: a call, as its caller or as the server saw it, or what was done for it.
public struct TraceSpan: Sendable {
    /// Whose view it is.
    public enum Kind: String, Sendable {
        /// Something within a server.
        case `internal`
        /// A call, as the server saw it.
        case server
        /// A call, as its caller saw it.
        case client
    }

    /// `Demo.List/add(_:)` for a call.
    public let name: String
    /// Whose view it is.
    public let kind: Kind
    /// The trace, and the span itself.
    public let context: TraceContext
    /// The ID of the span that it is a part of, in 16 hexadecimal digits; nil where the trace begins.
    public let parentID: String?
    /// When it began, in nanoseconds since 1970.
    public let began: UInt64
    /// How long it took.
    public let took: Duration
    /// More about it, by the names of OpenTelemetry: `rpc.system`, `rpc.service`, `rpc.method`.
    public let attributes: [(name: String, value: String)]
    /// The code of the error that it ended with, which is its `error.type`; nil for none.
    public let error: String?

    package init(
        _ name: String, _ kind: Kind, _ context: TraceContext, of parent: UInt64?, beganAt began: UInt64,
        took: UInt64, attributes: [(name: String, value: String)], error: String?
    ) {
        self.name = name
        self.kind = kind
        self.context = context
        parentID = parent.map { TraceContext.digits($0) }
        self.began = began
        self.took = .nanoseconds(Int64(clamping: took))
        self.attributes = attributes
        self.error = error
    }

    static func rpc(_ service: String, _ method: String) -> [(name: String, value: String)] {
        [("rpc.system", "trebuchet"), ("rpc.service", service), ("rpc.method", method)]
    }
}

/// A call that somebody makes as part of a trace, until it has its answer.
package struct TracedCall {
    /// Of the span of the call.
    package let context: TraceContext
    private let parent: UInt64?
    private let began = MonotonicClock.now
    private let beganAt = WallClock.now

    /// - Parameters:
    ///   - parent: what the caller is part of; nil where the call begins a trace.
    ///   - isTold: whether somebody hears of the span. Else there is none, and those at the server are children of the caller's.
    package init(of parent: TraceContext?, isTold: Bool) {
        context = parent.map { isTold ? $0.child : $0 } ?? TraceContext()
        self.parent = parent?.span
    }

    /// Its span, when the answer is there.
    ///
    /// - Parameter target: the method: `add(_:)`, or its mangled name.
    package func span(_ target: String, of actor: String, _ error: (any Error)?) -> TraceSpan? {
        guard context.isSampled, context.span != parent else { return nil }
        let code = error.map { error in
            (error as? TrebuchetError).map { "\($0.code)" }
                ?? (error is CancellationError ? "cancelled" : "application")
        }
        return TraceSpan(
            target, .client, context, of: parent, beganAt: beganAt, took: MonotonicClock.now &- began,
            attributes: [
                ("rpc.system", "trebuchet"), ("rpc.method", target), ("trebuchet.actor", actor),
            ], error: code)
    }
}

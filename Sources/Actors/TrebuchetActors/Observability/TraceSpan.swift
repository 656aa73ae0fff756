internal import Platform
internal import Transports

/// A span that has ended: a call, as its caller or as the server recorded it, or work for the call.
public struct TraceSpan: Sendable {
    /// The role of the recording side.
    public enum Kind: String, Sendable {
        /// Work inside a server.
        case `internal`
        /// A call, recorded by the server.
        case server
        /// A call, recorded by its caller.
        case client
    }

    /// The operation of a span. Its texts are created when a consumer needs them, and not where the call runs.
    package enum Subject: Sendable {
        case served(Served)
        case storeWrite(actor: String)
        /// A call by a client.
        ///
        /// - Parameter target: the method: `add(_:)`, or its mangled name.
        case request(target: String, actor: String)
    }

    /// A call of a client, without its arguments and principal.
    package struct Served: Sendable {
        let type: String
        let method: String
        let actor: String
        let connection: UInt64
        let address: SocketAddress?

        init(_ call: ServerEvent.Call) {
            (type, method, actor) = (call.type, call.method, call.actor)
            (connection, address) = (call.peer.connection, call.peer.address)
        }
    }

    package let subject: Subject
    /// The trace and the ID of this span.
    public let context: TraceContext
    /// The parent span; nil if the trace starts here.
    package let parent: UInt64?
    /// The start time in nanoseconds since 1970.
    public let startTime: UInt64
    /// The duration in nanoseconds.
    package let time: UInt64
    /// The code of the error, which is the `error.type` of the span; nil for none.
    public let error: String?

    package init(
        _ subject: Subject, _ context: TraceContext, of parent: UInt64?, beganAt began: UInt64, duration time: UInt64,
        error: String? = nil
    ) {
        self.subject = subject
        self.context = context
        self.parent = parent
        self.startTime = began
        self.time = time
        self.error = error
    }

    /// The name of the span: `Demo.List/add(_:)` for a call.
    public var name: String {
        switch subject {
        case .served(let call): "\(call.type)/\(call.method)"
        case .storeWrite: "store write"
        case .request(let target, _): target
        }
    }

    /// The role of the recording side.
    public var kind: Kind {
        switch subject {
        case .served: .server
        case .storeWrite: .internal
        case .request: .client
        }
    }

    /// The ID of the parent span in 16 hexadecimal digits; nil if the trace starts here.
    public var parentID: String? { parent.map { TraceContext.digits($0) } }

    /// The duration.
    public var duration: Duration { .nanoseconds(Int64(clamping: time)) }

    /// Further attributes, by the names of OpenTelemetry: `rpc.system`, `rpc.service`, `rpc.method`.
    public var attributes: [(name: String, value: String)] {
        var all: [(name: String, value: String)] = []
        eachAttribute { all.append(("\($0)", $1)) }
        return all
    }

    package func eachAttribute(_ body: (StaticString, String) -> Void) {
        switch subject {
        case .served(let call):
            body("rpc.system", "trebuchet")
            body("rpc.service", call.type)
            body("rpc.method", call.method)
            body("trebuchet.actor", call.actor)
            body("trebuchet.connection", "\(call.connection)")
            if let address = call.address { body("network.peer.address", address.host) }
        case .storeWrite(let actor):
            body("trebuchet.actor", actor)
        case .request(let target, let actor):
            body("rpc.system", "trebuchet")
            body("rpc.method", target)
            body("trebuchet.actor", actor)
        }
    }
}

/// A call in a trace, from its start to its response.
package struct TracedCall {
    /// The context of the call's span.
    package let context: TraceContext
    private let parent: UInt64?
    private let began = MonotonicClock.now
    private let beganAt = WallClock.now

    /// Starts the measurement of a call.
    ///
    /// - Parameters:
    ///   - parent: the caller's context; nil if the call starts a trace.
    ///   - isReported: whether an event handler receives the span. Otherwise no span is created, and the server's spans are
    ///     children of the caller's.
    package init(of parent: TraceContext?, isReported: Bool) {
        context = parent.map { isReported ? $0.child : $0 } ?? TraceContext()
        self.parent = parent?.span
    }

    /// Returns the span after the response has arrived.
    ///
    /// - Parameter target: the method: `add(_:)`, or its mangled name.
    package func span(_ target: String, of actor: String, _ error: (any Error)?) -> TraceSpan? {
        guard context.isSampled, context.span != parent else { return nil }
        let code = error.map { error in
            (error as? TrebuchetError).map { "\($0.code)" }
                ?? (error is CancellationError ? "cancelled" : "application")
        }
        return TraceSpan(
            .request(target: target, actor: actor), context, of: parent, beganAt: beganAt,
            duration: MonotonicClock.now &- began, error: code)
    }
}

internal import Platform
internal import Transports

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

    /// What it is about. Its texts are made of that when somebody wants them, and not where the call runs.
    package enum Subject: Sendable {
        case served(Served)
        case storeWrite(actor: String)
        /// - Parameter target: the method: `add(_:)`, or its mangled name.
        case asked(target: String, actor: String)
    }

    /// A call of a client. Neither its arguments nor its principal.
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
    /// The trace, and the span itself.
    public let context: TraceContext
    /// The span that it is a part of; nil where the trace begins.
    package let parent: UInt64?
    /// When it began, in nanoseconds since 1970.
    public let began: UInt64
    /// In nanoseconds.
    package let time: UInt64
    /// The code of the error that it ended with, which is its `error.type`; nil for none.
    public let error: String?

    package init(
        _ subject: Subject, _ context: TraceContext, of parent: UInt64?, beganAt began: UInt64, took time: UInt64,
        error: String? = nil
    ) {
        self.subject = subject
        self.context = context
        self.parent = parent
        self.began = began
        self.time = time
        self.error = error
    }

    /// `Demo.List/add(_:)` for a call.
    public var name: String {
        switch subject {
        case .served(let call): "\(call.type)/\(call.method)"
        case .storeWrite: "store write"
        case .asked(let target, _): target
        }
    }

    /// Whose view it is.
    public var kind: Kind {
        switch subject {
        case .served: .server
        case .storeWrite: .internal
        case .asked: .client
        }
    }

    /// The ID of the span that it is a part of, in 16 hexadecimal digits; nil where the trace begins.
    public var parentID: String? { parent.map { TraceContext.digits($0) } }

    /// How long it took.
    public var took: Duration { .nanoseconds(Int64(clamping: time)) }

    /// More about it, by the names of OpenTelemetry: `rpc.system`, `rpc.service`, `rpc.method`.
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
        case .asked(let target, let actor):
            body("rpc.system", "trebuchet")
            body("rpc.method", target)
            body("trebuchet.actor", actor)
        }
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
            .asked(target: target, actor: actor), context, of: parent, beganAt: beganAt,
            took: MonotonicClock.now &- began, error: code)
    }
}

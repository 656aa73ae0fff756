internal import Transports
/// A call of an `@Idempotent` method: it can be sent again over another connection when the first one broke.
struct RepeatableCall {
    private let number: UInt64
    private let actorID: String
    private let target: String
    private let request: CallRequest
    /// What the caller has asked for, in nanoseconds of the monotonic clock.
    private let deadline: UInt64?
    private let traceparent: String?
    private enum Sending {
        case never
        /// To a server that keeps no answers.
        case unkept
        /// Over the connection of this name.
        case kept(session: String)
    }

    private var first = Sending.never

    init(
        number: UInt64, actorID: String, target: String, request: CallRequest, deadline: UInt64?,
        traceparent: String? = nil
    ) {
        self.traceparent = traceparent
        self.number = number
        self.actorID = actorID
        self.target = target
        self.request = request
        self.deadline = deadline
    }

    /// Bytes of its message, at most, but for characters that need escapes.
    var byteCount: Int {
        let parts =
            request.arguments.reduce(0) { $0 + $1.count + 1 } + request.generics.reduce(0) { $0 + $1.utf8.count + 3 }
        return parts + actorID.utf8.count + target.utf8.count + 256
    }

    /// Whether it was sent before.
    var isSent: Bool { if case .never = first { false } else { true } }

    /// Whether it may be sent again.
    var isKept: Bool { if case .kept = first { true } else { false } }

    /// The message to send over the connection of this name, nil when its server keeps no answers and the call was sent
    /// before.
    mutating func next(over session: String?, at now: UInt64) -> [UInt8]? {
        let isRepeat = isSent
        switch (first, session) {
        case (.never, let session?): first = .kept(session: session)
        case (.never, nil): first = .unkept
        case (.unkept, _), (.kept, nil): return nil
        case (.kept, _?): break
        }
        var name: String?
        if case .kept(let session) = first { name = session }
        return InvocationMessage(
            number: number, actorID: actorID, target: target, request: request,
            timeoutMilliseconds: deadline.map { $0 > now ? Int(($0 - now + 999_999) / 1_000_000) : 1 },
            session: name, traceparent: traceparent, isRepeat: isRepeat
        ).bytes
    }
}

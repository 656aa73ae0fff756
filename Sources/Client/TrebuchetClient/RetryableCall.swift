internal import Transports
/// A call of an `@Idempotent` method, which can be sent again over another connection after the first one broke.
struct RetryableCall {
    private let number: UInt64
    private let actorID: String
    private let target: String
    private let request: CallRequest
    /// The caller's deadline, in nanoseconds of the monotonic clock.
    private let deadline: UInt64?
    private let traceparent: String?
    /// The JSON of the metadata.
    private let metadata: [UInt8]?
    /// The first transmission of the call.
    private enum Sending {
        case never
        /// Sent to a server that records no responses.
        case unrecorded
        /// Sent over the connection with this name.
        case recorded(session: String)
    }

    private var first = Sending.never

    init(
        number: UInt64, actorID: String, target: String, request: CallRequest, deadline: UInt64?,
        traceparent: String? = nil, metadata: [UInt8]? = nil
    ) {
        self.traceparent = traceparent
        self.metadata = metadata
        self.number = number
        self.actorID = actorID
        self.target = target
        self.request = request
        self.deadline = deadline
    }

    /// The maximum size of its message in bytes, without escapes.
    var byteCount: Int {
        let parts =
            request.arguments.reduce(0) { $0 + $1.count + 1 } + request.generics.reduce(0) { $0 + $1.utf8.count + 3 }
        return parts + actorID.utf8.count + target.utf8.count + (metadata?.count ?? 0) + 256
    }

    /// True if it was sent before.
    var isSent: Bool { if case .never = first { false } else { true } }

    /// True if it may be sent again.
    var isRetryable: Bool { if case .recorded = first { true } else { false } }

    /// Returns the message for the connection with this name; nil if its server records no responses and the call was sent
    /// before.
    mutating func next(over session: String?, at now: UInt64) -> [UInt8]? {
        let isRepeat = isSent
        switch (first, session) {
        case (.never, let session?): first = .recorded(session: session)
        case (.never, nil): first = .unrecorded
        case (.unrecorded, _), (.recorded, nil): return nil
        case (.recorded, _?): break
        }
        var name: String?
        if case .recorded(let session) = first { name = session }
        return InvocationMessage(
            number: number, actorID: actorID, target: target, request: request,
            timeoutMilliseconds: deadline.map { $0 > now ? Int(($0 - now + 999_999) / 1_000_000) : 1 },
            session: name, traceparent: traceparent, metadata: metadata, isRepeat: isRepeat
        ).bytes
    }
}

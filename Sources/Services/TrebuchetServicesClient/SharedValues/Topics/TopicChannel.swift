public import SharedState

/// A topic of a room: the events of other members, and the status of publishing.
///
///     @Shared(.trebuchetTopic(Schema.Topics.emoji, roomId: "lobby")) var channel: TopicChannel<Emoji>
///
///     $channel.publish(Emoji(name: "tada"))
public struct TopicChannel<Payload: Codable & Sendable & Equatable>: Sendable {
    /// The events of other members, oldest first; those of this client are not included.
    public private(set) var events: [TopicEvent<Payload>]
    /// The maximum number of stored events; the oldest are dropped first. Default 50.
    public var maxEvents: Int {
        didSet { dropOldest() }
    }
    /// True when events arrive and can be published.
    public var isConnected: Bool
    /// True until the topic is connected for the first time.
    public var isLoading: Bool
    /// The status of publishing: pending while any publish is in progress, then the outcome of the newest.
    public var publishStatus: OperationStatus
    /// The error of the newest publish, until one succeeds or `reset()`; or an error of the room, or missed events.
    public var error: (any Error)?
    /// The number of events of all topics that the room had discarded before this client could receive them.
    public internal(set) var missedCount = 0
    /// How often the room has ended and was created again while this client was away, for example when the last member had left or
    /// a server without a cluster was restarted. Events that were published meanwhile may be missing.
    public internal(set) var restarts = 0
    /// The destination of events; nil for a channel without a key.
    var sink: TopicEventSink?

    /// Creates a channel for previews and tests; it publishes nothing. The channel of a room comes from `.trebuchetTopic`.
    ///
    /// - Parameter maxEvents: the maximum number of stored events, including `events`. Default 50.
    public init(
        events: [TopicEvent<Payload>] = [], isConnected: Bool = false, maxEvents: Int = 50, isLoading: Bool = false,
        publishStatus: OperationStatus = .idle, error: (any Error)? = nil
    ) {
        self.events = events
        self.isConnected = isConnected
        self.maxEvents = maxEvents
        self.isLoading = isLoading
        self.publishStatus = publishStatus
        self.error = error
        dropOldest()
    }

    /// The newest of ``events``; nil when there are none.
    public var latestEvent: TopicEvent<Payload>? { events.last }
    /// True while any publish is in progress.
    public var isPublishing: Bool { publishStatus == .pending }
    /// True when there is an ``error``.
    public var isError: Bool { error != nil }
    /// True when there are ``events``.
    public var hasEvent: Bool { latestEvent != nil }

    /// Appends an event, and drops the oldest above the maximum.
    public mutating func addEvent(_ event: TopicEvent<Payload>) {
        events.append(event)
        dropOldest()
    }

    /// Removes all events from this value; other clients keep theirs.
    public mutating func clearEvents() { events = [] }

    private mutating func dropOldest() { events.removeFirst(max(0, events.count - max(0, maxEvents))) }
}

extension TopicChannel: Equatable {
    /// Errors are equal when their texts are.
    public static func == (a: Self, b: Self) -> Bool {
        a.events == b.events && a.maxEvents == b.maxEvents && a.isConnected == b.isConnected
            && a.isLoading == b.isLoading && a.publishStatus == b.publishStatus && isSameError(a.error, b.error)
            && a.missedCount == b.missedCount && a.restarts == b.restarts
    }
}

/// The outcome of a publish as a value to store: `onSettled: { results.append(TopicPublishResult($0)) }`.
public struct TopicPublishResult: Sendable {
    /// True when the server has published the event.
    public let success: Bool
    /// The error of the publish; nil on success.
    public let error: (any Error)?

    /// - Parameter result: the argument of `onSettled`.
    public init(_ result: Result<Void, any Error>) {
        switch result {
        case .success: (success, error) = (true, nil)
        case .failure(let failure): (success, error) = (false, failure)
        }
    }

    /// A successful publish.
    public static var success: Self { Self(.success(())) }

    /// A failed publish.
    public static func failure(_ error: any Error) -> Self { Self(.failure(error)) }
}

/// A topic channel with any payload: for extensions of `Shared` that apply to all of them.
public protocol TopicChannelProtocol: Sendable, Equatable {
    /// The type of the events.
    associatedtype Payload: Codable & Sendable & Equatable
}

extension TopicChannel: TopicChannelProtocol {}

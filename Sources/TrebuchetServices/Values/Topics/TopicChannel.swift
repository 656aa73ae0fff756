public import SharedState

/// A topic of a room: what the others publish, and how publishing goes.
///
///     @Shared(.trebuchetTopic(Schema.Topics.emoji, roomId: "lobby")) var channel: TopicChannel<Emoji>
///
///     $channel.publish(Emoji(name: "tada"))
public struct TopicChannel<Payload: Codable & Sendable & Equatable>: Sendable {
    /// What the others have published, the oldest first; one's own events are not among them.
    public private(set) var events: [TopicEvent<Payload>]
    /// How many events are kept; the oldest go first. Default 50.
    public var maxEvents: Int {
        didSet { dropOldest() }
    }
    /// Whether events arrive and can be published.
    public var isConnected: Bool
    /// Whether the topic is being connected for the first time.
    public var isLoading: Bool
    /// Pending while any publish is under way; then as the newest one went.
    public var publishStatus: OperationStatus
    /// What the newest publish failed with, until one succeeds or `reset()`; or what is wrong with the room, or which events
    /// were missed.
    public var error: (any Error)?
    /// Where to publish; nil for a channel that comes from no key.
    var line: TopicLine?

    /// A channel as it stands; for previews and tests. It publishes nowhere: those of a room come through `.trebuchetTopic`.
    ///
    /// - Parameter maxEvents: how many events are kept, of `events` too. Default 50.
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
    /// Whether any publish is under way.
    public var isPublishing: Bool { publishStatus == .pending }
    /// Whether there is an ``error``.
    public var isError: Bool { error != nil }
    /// Whether there are any ``events``.
    public var hasEvent: Bool { latestEvent != nil }

    /// Adds an event as the latest, and drops the oldest when there are too many.
    public mutating func addEvent(_ event: TopicEvent<Payload>) {
        events.append(event)
        dropOldest()
    }

    /// Forgets all events here; the others keep theirs.
    public mutating func clearEvents() { events = [] }

    private mutating func dropOldest() { events.removeFirst(max(0, events.count - max(0, maxEvents))) }
}

extension TopicChannel: Equatable {
    /// Errors are equal when they say the same.
    public static func == (a: Self, b: Self) -> Bool {
        a.events == b.events && a.maxEvents == b.maxEvents && a.isConnected == b.isConnected
            && a.isLoading == b.isLoading && a.publishStatus == b.publishStatus && isSameError(a.error, b.error)
    }
}

/// How a publish went, as one value that can be kept: `onSettled: { results.append(TopicPublishResult($0)) }`.
public struct TopicPublishResult: Sendable {
    /// Whether the server has handed the event on.
    public let success: Bool
    /// What the publish failed with; nil when it did not.
    public let error: (any Error)?

    /// - Parameter result: what `onSettled` of a publish gets.
    public init(_ result: Result<Void, any Error>) {
        switch result {
        case .success: (success, error) = (true, nil)
        case .failure(let failure): (success, error) = (false, failure)
        }
    }

    /// The server has handed the event on.
    public static var success: Self { Self(.success(())) }

    /// The publish failed.
    public static func failure(_ error: any Error) -> Self { Self(.failure(error)) }
}

/// A topic's channel, whatever it carries: for extensions of `Shared` that are meant for all of them.
public protocol TopicChannelProtocol: Sendable, Equatable {
    /// What is published.
    associatedtype Payload: Codable & Sendable & Equatable
}

extension TopicChannel: TopicChannelProtocol {}

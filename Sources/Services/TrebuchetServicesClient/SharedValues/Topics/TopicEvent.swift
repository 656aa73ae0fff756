#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// An event that another member of a room has published.
public struct TopicEvent<Payload: Codable & Sendable & Equatable>: Identifiable, Sendable, Equatable {
    /// An identifier from the receiving client: the event has another id at another client.
    public let id: UUID
    /// The membership that published the event.
    public let peerId: String
    /// The payload of the event.
    public let data: Payload
    /// The time at which it was received.
    public let timestamp: Date

    /// Creates an event for previews and tests.
    public init(id: UUID = UUID(), peerId: String, data: Payload, timestamp: Date = Date()) {
        self.id = id
        self.peerId = peerId
        self.data = data
        self.timestamp = timestamp
    }
}

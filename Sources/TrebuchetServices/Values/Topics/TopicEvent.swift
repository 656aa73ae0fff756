#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Something that another member of a room has published.
public struct TopicEvent<Payload: Codable & Sendable & Equatable>: Identifiable, Sendable, Equatable {
    /// Made by who received it: the same event has another id at another client.
    public let id: UUID
    /// The stay of who published it.
    public let peerId: String
    /// What was published.
    public let data: Payload
    /// When it was received.
    public let timestamp: Date

    /// An event as it stands; for previews and tests.
    public init(id: UUID = UUID(), peerId: String, data: Payload, timestamp: Date = Date()) {
        self.id = id
        self.peerId = peerId
        self.data = data
        self.timestamp = timestamp
    }
}

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Something that another member of a room has published.
public struct TopicEvent<Payload: Codable & Sendable & Equatable>: Identifiable, Sendable, Equatable {
    public let id: UUID
    /// The stay of who published it.
    public let peerId: String
    public let data: Payload
    /// When it was received.
    public let timestamp: Date

    public init(id: UUID = UUID(), peerId: String, data: Payload, timestamp: Date = Date()) {
        self.id = id
        self.peerId = peerId
        self.data = data
        self.timestamp = timestamp
    }
}

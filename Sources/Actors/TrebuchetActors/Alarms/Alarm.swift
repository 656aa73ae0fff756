internal import TrebuchetWire

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// An alarm that is due, as the server passes it to the actor's `alarm(_:)`.
public struct Alarm: Sendable {
    /// The name that the alarm was set under.
    public let name: String
    /// The time that the alarm was set for; for a recurring alarm the start of the missed period.
    public let dueTime: Date
    /// The interval of a recurring alarm; nil for others.
    public let interval: Duration?
    /// The number of this attempt, from 1. It is higher after attempts whose method threw an error.
    public let attempt: Int
    private let json: String?

    init(_ entry: AlarmTable.Entry) {
        name = entry.name
        dueTime = Date(timeIntervalSince1970: Double(entry.due) / 1_000)
        interval = entry.interval.map { .milliseconds($0) }
        attempt = (entry.failures ?? 0) + 1
        json = entry.payload
    }

    /// Returns the payload that the alarm was set with. Throws a `DecodingError` if it has none, or one of another type.
    public func payload<Payload: Decodable>(as type: Payload.Type = Payload.self) throws -> Payload {
        guard let json else {
            throw DecodingError.valueNotFound(
                type, .init(codingPath: [], debugDescription: "the alarm '\(name)' has no payload"))
        }
        return try Array(json.utf8).withUnsafeBytes { try ValueCoder().decode(type, from: $0) }
    }
}

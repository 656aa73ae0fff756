internal import Bytes

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A time that the server sets when it executes the write: a member of an element.
///
///     struct Message: Codable, Identifiable, Equatable, Sendable { var id: String; var sentAt = ServerTime.now }
///
/// In a write its JSON is `{"$serverTime":true}`. In the document it is milliseconds since 1970 by the server's clock, as in
/// ``Document/updatedAt``.
public struct ServerTime: Sendable, Hashable {
    /// Milliseconds since 1970; nil for a time that the server has not set yet.
    public let milliseconds: Int?

    private init(_ milliseconds: Int?) { self.milliseconds = milliseconds }

    /// The time at which the server executes the write. Until then a client shows its local time.
    public static let now = Self(nil)

    /// Creates a fixed time, in milliseconds since 1970.
    public init(milliseconds: Int) { self.init(milliseconds) }

    /// The time as a date; nil for a time that the server has not set yet.
    public var date: Date? { milliseconds.map { Date(timeIntervalSince1970: Double($0) / 1_000) } }
}

extension ServerTime: Codable {
    public init(from decoder: any Decoder) throws {
        switch try JSONValue(from: decoder) {
        case .integer(let milliseconds): self.init(Int(milliseconds))
        case .serverTime: self.init(nil)
        case let other:
            throw DecodingError.typeMismatch(
                ServerTime.self, .init(codingPath: decoder.codingPath, debugDescription: "\(other) is not a time"))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        let value = milliseconds.map { JSONValue.integer(Int64($0)) } ?? .serverTime
        try value.encode(to: encoder)
    }
}

extension JSONValue {
    /// The placeholder for the server's time in a write: `{"$serverTime":true}`.
    public static let serverTime = JSONValue.object(["$serverTime": .bool(true)])
}

extension JSONObject {
    private static let serverTime = Array(#"{"$serverTime":true}"#.utf8)

    private static func placeholder(in text: UnsafeRawBufferPointer) -> Int? {
        CanonicalJSON.firstIndex(of: serverTime, anchor: 2, in: text)
    }

    /// Returns the object with all placeholders replaced by the time, in milliseconds since 1970.
    func settingServerTime(_ time: Int) -> JSONObject {
        withText { text in
            // These bytes are a value: within a string, quotes are escaped.
            guard var found = Self.placeholder(in: text), found > 0 else { return self }
            var changed = ByteBuffer(capacity: text.count)
            var rest = text
            while true {
                changed.append(UnsafeRawBufferPointer(rebasing: rest[..<found]))
                changed.append(decimal: Int64(time))
                rest = UnsafeRawBufferPointer(rebasing: rest[(found + Self.serverTime.count)...])
                guard let next = Self.placeholder(in: rest) else { break }
                found = next
            }
            changed.append(rest)
            return JSONObject(canonical: changed.bytes)
        }
    }
}

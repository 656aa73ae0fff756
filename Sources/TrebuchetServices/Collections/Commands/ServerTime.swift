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

    private var hasServerTime: Bool {
        switch self {
        case .array(let elements): elements.contains { $0.hasServerTime }
        case .object(let members): self == .serverTime || members.values.contains { $0.hasServerTime }
        default: false
        }
    }

    fileprivate func settingServerTime(_ time: Int) -> JSONValue {
        guard hasServerTime else { return self }
        switch self {
        case .array(let elements): return .array(elements.map { $0.settingServerTime(time) })
        case .object(let members):
            return self == .serverTime ? .integer(Int64(time)) : .object(members.settingServerTime(time))
        default: return self
        }
    }
}

extension JSONObject {
    private static let serverTimeName = Array(#""$serverTime":"#.utf8)

    /// Returns the object with all placeholders replaced by the time, in milliseconds since 1970.
    func settingServerTime(_ time: Int) -> JSONObject {
        guard withText({ CanonicalJSON.contains(Self.serverTimeName, in: $0) }) else { return self }
        return JSONObject(map { (key: $0.name, value: $0.value.settingServerTime(time)) })
    }
}

extension JSONValue {
    /// Creates an integer for a whole number that a double represents exactly: 1.0 and 1 are the same number.
    init(_ number: Double) {
        if let whole = Int64(exactly: number), whole.magnitude < 1 << 53 {
            self = .integer(whole)
        } else {
            self = .number(number)
        }
    }
}

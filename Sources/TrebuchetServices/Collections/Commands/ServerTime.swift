#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A time that the server sets when it does the write: a member of an element.
///
///     struct Message: Codable, Identifiable, Equatable, Sendable { var id: String; var sentAt = ServerTime.now }
///
/// In a write it is `{"$serverTime":true}` in JSON, and in the document milliseconds since 1970 by the server's clock, those of
/// ``Document/updatedAt``.
public struct ServerTime: Sendable, Hashable {
    /// Milliseconds since 1970; nil for a time that is still to be set.
    public let milliseconds: Int?

    private init(_ milliseconds: Int?) { self.milliseconds = milliseconds }

    /// When the server does the write. Until then a client shows the time by its own clock.
    public static let now = Self(nil)

    /// A time that is set already, and is written as it is: milliseconds since 1970.
    public init(milliseconds: Int) { self.init(milliseconds) }

    /// Nil for a time that is still to be set.
    public var date: Date? { milliseconds.map { Date(timeIntervalSince1970: Double($0) / 1_000) } }
}

extension ServerTime: Codable {
    public init(from decoder: any Decoder) throws {
        switch try JSONValue(from: decoder) {
        case .integer(let milliseconds): self.init(Int(milliseconds))
        case .serverTime: self.init(nil)
        case let other:
            throw DecodingError.typeMismatch(
                ServerTime.self, .init(codingPath: decoder.codingPath, debugDescription: "\(other) is no time"))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        let value = milliseconds.map { JSONValue.integer(Int64($0)) } ?? .serverTime
        try value.encode(to: encoder)
    }
}

extension JSONValue {
    /// Stands for the server's time in what is written: `{"$serverTime":true}`.
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
    /// With the time, in milliseconds since 1970, wherever it is asked for.
    func settingServerTime(_ time: Int) -> JSONObject {
        var set = self
        for (name, value) in self {
            switch value {
            case .array, .object: set[name] = value.settingServerTime(time)
            default: break
            }
        }
        return set
    }
}

extension JSONValue {
    /// Whole numbers that a double can have all of are integers: 1.0 and 1 are one number.
    init(_ number: Double) {
        if let whole = Int64(exactly: number), whole.magnitude < 1 << 53 {
            self = .integer(whole)
        } else {
            self = .number(number)
        }
    }
}

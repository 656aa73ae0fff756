/// A value that is kept as JSON if this program cannot decode it, such as a case that only newer programs know.
///
///     struct Lot: Codable, Sendable {
///         var last: Tolerant<Move>
///     }
///
///     switch lot.last {
///     case .known(let move): show(move)
///     case .unknown(let json): showUpdateNotice(json)          // "jump", from a newer server
///     }
///
/// Without it, the whole event or version of a state that contains such a value does not decode. With it, only this value is
/// unknown: also one element of an array. An unknown value is encoded unchanged, with numbers as ``JSONValue`` represents them. A
/// program that sends a received value back therefore preserves it.
///
/// The JSON is that of `Value`. A program with `Tolerant<Move>` and one with `Move` can therefore exchange values, and an app can
/// begin or end to use it at any time. In an optional, null is nil and not unknown.
public enum Tolerant<Value: Codable>: Codable {
    /// A value that this program knows.
    case known(Value)
    /// The JSON of a value that does not decode as `Value`.
    case unknown(JSONValue)

    /// The value; nil if it is unknown.
    public var value: Value? { if case .known(let value) = self { value } else { nil } }

    /// Decodes a known value, or keeps the JSON. Throws only if the text is not valid JSON.
    public init(from decoder: any Decoder) throws {
        do {
            self = .known(try decoder.singleValueContainer().decode(Value.self))
        } catch {
            self = .unknown(try JSONValue(from: decoder))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .known(let value): try container.encode(value)
        case .unknown(let json): try container.encode(json)
        }
    }
}

extension Tolerant: Sendable where Value: Sendable {}
extension Tolerant: Equatable where Value: Equatable {}
extension Tolerant: Hashable where Value: Hashable {}

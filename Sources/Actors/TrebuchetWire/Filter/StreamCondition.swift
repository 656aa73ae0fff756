internal import Bytes

/// A condition on a part of a state, for `StreamFilter.where`.
public struct StreamCondition: Sendable, Hashable {
    /// The comparison of a condition.
    enum Comparison: String, Sendable {
        case eq, ne, lt, le, gt, ge, exists, nonEmpty

        var needsValue: Bool { self != .exists && self != .nonEmpty }
    }

    let comparison: Comparison
    /// The value as JSON; nil if the comparison needs none.
    let value: [UInt8]?
    /// Whether the condition is true for values that are not numbers, and numbers are compared as `Double`. Filters of version 2
    /// have this meaning; `"numbersAlone":true` on the wire.
    private(set) var comparesNumbersAlone = false

    init(comparison: Comparison, value: [UInt8]?, comparesNumbersAlone: Bool = false) {
        self.comparison = comparison
        self.value = value
        self.comparesNumbersAlone = comparesNumbersAlone
    }

    var ofNumbersAlone: Self {
        var copy = self
        copy.comparesNumbersAlone = true
        return copy
    }

    /// The part equals the value.
    public static func equal(_ value: StreamScalar) -> Self { Self(comparison: .eq, value: value.json) }
    /// The part does not equal the value, or does not exist.
    public static func notEqual(_ value: StreamScalar) -> Self { Self(comparison: .ne, value: value.json) }
    /// The part is less than the value. Numbers are compared with numbers, and text with text by bytes; other values are never
    /// less.
    public static func less(than value: StreamScalar) -> Self { Self(comparison: .lt, value: value.json) }
    /// The part is less than or equal to the value.
    public static func atMost(_ value: StreamScalar) -> Self { Self(comparison: .le, value: value.json) }
    /// The part is greater than the value.
    public static func greater(than value: StreamScalar) -> Self { Self(comparison: .gt, value: value.json) }
    /// The part is greater than or equal to the value.
    public static func atLeast(_ value: StreamScalar) -> Self { Self(comparison: .ge, value: value.json) }
    /// The part exists and is not null.
    public static var exists: Self { Self(comparison: .exists, value: nil) }
    /// The part is a non-empty text, array or object.
    public static var nonEmpty: Self { Self(comparison: .nonEmpty, value: nil) }
}

/// A value to compare a part of a state with, written as a literal: `.greater(than: 10)`.
public enum StreamScalar: Sendable, Hashable, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByStringLiteral, ExpressibleByBooleanLiteral
{
    /// An integer.
    case int(Int)
    /// A floating-point number.
    case double(Double)
    /// A text.
    case string(String)
    /// A Boolean value.
    case bool(Bool)

    public init(integerLiteral value: Int) { self = .int(value) }
    public init(floatLiteral value: Double) { self = .double(value) }
    public init(stringLiteral value: String) { self = .string(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }

    fileprivate var json: [UInt8] {
        switch self {
        case .int(let value): return Array(String(value).utf8)
        // JSON has no infinity; as null it equals and orders with nothing.
        case .double(let value): return Array((value.isFinite ? "\(value)" : "null").utf8)
        case .bool(let value): return Array(String(value).utf8)
        case .string(let value):
            var buffer = ByteBuffer()
            JSONString.append(value, to: &buffer)
            return Array(buffer.bytes)
        }
    }
}

internal import Bytes

/// What a part of a state must be, for `StreamFilter.where`.
public struct StreamCondition: Sendable, Hashable {
    enum Comparison: String, Sendable {
        case eq, ne, lt, le, gt, ge, exists, nonEmpty

        var needsValue: Bool { self != .exists && self != .nonEmpty }
    }

    let comparison: Comparison
    /// JSON; nil where none is needed.
    let value: [UInt8]?
    /// Whether the condition holds for what is no number, and numbers are compared as a `Double` tells them. Filters of version 2
    /// mean it so; `"numbersAlone":true` on the wire.
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

    public static func equal(_ value: StreamScalar) -> Self { Self(comparison: .eq, value: value.json) }
    /// Also when there is no such part.
    public static func notEqual(_ value: StreamScalar) -> Self { Self(comparison: .ne, value: value.json) }
    /// Numbers are compared with numbers, text with text by its bytes; others are not less.
    public static func less(than value: StreamScalar) -> Self { Self(comparison: .lt, value: value.json) }
    public static func atMost(_ value: StreamScalar) -> Self { Self(comparison: .le, value: value.json) }
    public static func greater(than value: StreamScalar) -> Self { Self(comparison: .gt, value: value.json) }
    public static func atLeast(_ value: StreamScalar) -> Self { Self(comparison: .ge, value: value.json) }
    /// There is such a part, and it is not null.
    public static var exists: Self { Self(comparison: .exists, value: nil) }
    /// It is a text, an array or an object with something in it.
    public static var nonEmpty: Self { Self(comparison: .nonEmpty, value: nil) }
}

/// A value that a part of a state is compared with; written as a literal: `.greater(than: 10)`.
public enum StreamScalar: Sendable, Hashable, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByStringLiteral, ExpressibleByBooleanLiteral
{
    case int(Int)
    case double(Double)
    case string(String)
    case bool(Bool)

    public init(integerLiteral value: Int) { self = .int(value) }
    public init(floatLiteral value: Double) { self = .double(value) }
    public init(stringLiteral value: String) { self = .string(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }

    fileprivate var json: [UInt8] {
        switch self {
        case .int(let value): return Array(String(value).utf8)
        // JSON has no infinity; nothing is beyond it or equal to it.
        case .double(let value): return Array((value.isFinite ? "\(value)" : "null").utf8)
        case .bool(let value): return Array(String(value).utf8)
        case .string(let value):
            var buffer = ByteBuffer()
            JSONString.append(value, to: &buffer)
            return Array(buffer.bytes)
        }
    }
}

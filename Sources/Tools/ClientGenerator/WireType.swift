/// The representation of a value on the wire and in TypeScript.
package indirect enum WireType: Hashable, Sendable {
    case string, boolean, url, uuid, date, data, decimal
    /// A number, with the name of its Swift type.
    case number(String)
    /// A number as `bigint`, with the name of its Swift type.
    case bigint(String)
    case array(WireType)
    /// An array without an order.
    case set(WireType)
    /// A range as `[lower, upper]`.
    case range(WireType)
    /// A dictionary that is an object.
    case record(key: WireType, WireType)
    /// A dictionary that is an array of keys and values.
    case map(WireType, WireType)
    case optional(WireType)
    /// A value that is kept as JSON where it does not decode.
    case tolerant(WireType)
    /// A type of ``ClientModel/definitions``, with its generic arguments.
    case named(Int, [WireType])
    /// A generic parameter of the enclosing type.
    case parameter(String)
    /// The name of an actor of this type.
    case reference(String)
    /// TypeScript from a comment, used unchanged.
    case custom(String)
    /// An invalid type, which has been reported.
    case unknown

    /// Returns the type with its generic parameters replaced.
    func replacing(_ parameters: [String: WireType]) -> WireType {
        switch self {
        case .parameter(let name): parameters[name] ?? self
        case .array(let element): .array(element.replacing(parameters))
        case .set(let element): .set(element.replacing(parameters))
        case .range(let bound): .range(bound.replacing(parameters))
        case .record(let key, let value): .record(key: key.replacing(parameters), value.replacing(parameters))
        case .map(let key, let value): .map(key.replacing(parameters), value.replacing(parameters))
        case .optional(let wrapped): .optional(wrapped.replacing(parameters))
        case .tolerant(let wrapped): .tolerant(wrapped.replacing(parameters))
        case .named(let id, let arguments): .named(id, arguments.map { $0.replacing(parameters) })
        default: self
        }
    }

    var isOptional: Bool { if case .optional = self { true } else { false } }

    /// The type without its enclosing optionals.
    var unwrapped: WireType { if case .optional(let wrapped) = self { wrapped.unwrapped } else { self } }
}

import Bytes
import TrebuchetWire

/// The value coder: it never crashes, accepts only JSON, and its output is JSON with an equal value.
enum CodingFuzz {
    static func run(_ input: [UInt8]) {
        let coder = ValueCoder()
        func read(_ text: UnsafeRawBufferPointer) -> Anything? { try? coder.decode(Anything.self, from: text) }
        guard let value = input.withUnsafeBytes(read) else { return }
        var text = ByteBuffer()
        do { try coder.encode(value, into: &text) } catch { fatalError("a decoded value cannot be encoded: \(error)") }
        precondition(read(text.bytes) == value, "a round trip changes the value")
    }
}

/// Any JSON, whose members are decoded in another order, and whose parts are written alternately.
private indirect enum Anything: Codable, Equatable {
    case null, bool(Bool), int(Int), double(Double), text(String), list([Anything]), table([String: Anything])

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    init(from decoder: any Decoder) throws {
        if let container = try? decoder.container(keyedBy: Name.self) {
            var members: [String: Anything] = [:]
            for name in container.allKeys.reversed() {
                members[name.stringValue] = try container.decode(Anything.self, forKey: name)
            }
            self = .table(members)
        } else if var container = try? decoder.unkeyedContainer() {
            var elements: [Anything] = []
            while !container.isAtEnd { elements.append(try container.decode(Anything.self)) }
            self = .list(elements)
        } else {
            let container = try decoder.singleValueContainer()
            if container.decodeNil() {
                self = .null
            } else if let bool = try? container.decode(Bool.self) {
                self = .bool(bool)
            } else if let int = try? container.decode(Int.self) {
                self = .int(int)
            } else if let double = try? container.decode(Double.self) {
                self = .double(double)
            } else {
                self = .text(try container.decode(String.self))
            }
        }
    }

    func encode(to encoder: any Encoder) throws {
        var nested: [(any Encoder, Anything)] = []
        switch self {
        case .null:
            var container = encoder.singleValueContainer()
            try container.encodeNil()
        case .bool(let value): try value.encode(to: encoder)
        case .int(let value): try value.encode(to: encoder)
        case .double(let value): try value.encode(to: encoder)
        case .text(let value): try value.encode(to: encoder)
        case .list(let elements):
            var container = encoder.unkeyedContainer()
            for (index, element) in elements.enumerated() {
                if index % 3 == 1 {
                    nested.append((container.superEncoder(), element))
                } else {
                    try container.encode(element)
                }
            }
        case .table(let members):
            var container = encoder.container(keyedBy: Name.self)
            for (name, value) in members {
                if name.utf8.count % 3 == 1 {
                    nested.append((container.superEncoder(forKey: Name(stringValue: name)), value))
                } else {
                    try container.encode(value, forKey: Name(stringValue: name))
                }
            }
        }
        for (encoder, value) in nested.reversed() { try value.encode(to: encoder) }
    }
}

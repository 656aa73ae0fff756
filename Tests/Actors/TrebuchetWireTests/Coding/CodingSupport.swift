import Bytes
import Foundation

@testable import TrebuchetWire

/// Foundation's coders, with the dates and texts of `ValueCoder`.
enum Reference {
    static func encoder(_ userInfo: [CodingUserInfoKey: any Sendable] = [:]) -> JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        encoder.userInfo = userInfo
        encoder.dateEncodingStrategy = .custom { date, encoder in
            guard !date.timeIntervalSince1970.isNaN else {
                throw EncodingError.invalidValue(date, .init(codingPath: encoder.codingPath, debugDescription: "none"))
            }
            var buffer = ByteBuffer()
            DateText.append(date, to: &buffer)
            var container = encoder.singleValueContainer()
            try container.encode(String(decoding: buffer.bytes, as: UTF8.self))
        }
        return encoder
    }

    static func decoder(_ userInfo: [CodingUserInfoKey: any Sendable] = [:]) -> JSONDecoder {
        let decoder = JSONDecoder()
        decoder.userInfo = userInfo
        decoder.dateDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            guard let seconds = ISO8601.seconds(try container.decode(String.self)) else {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "no date")
            }
            return Date(timeIntervalSince1970: seconds)
        }
        return decoder
    }
}

/// The JSON that `ValueCoder` encodes.
func written(_ value: some Encodable, _ coder: ValueCoder = ValueCoder()) throws -> String {
    var buffer = ByteBuffer()
    try coder.encode(value, into: &buffer)
    return String(decoding: buffer.bytes, as: UTF8.self)
}

/// The value that `ValueCoder` decodes.
func read<Value: Decodable>(_ type: Value.Type, _ text: String, _ coder: ValueCoder = ValueCoder()) throws -> Value {
    try Array(text.utf8).withUnsafeBytes { try coder.decode(type, from: $0) }
}

/// True if two texts are the same JSON value, regardless of member order.
func isSameJSON(_ one: String, _ other: String) -> Bool {
    func canonical(_ text: String) -> NSObject? {
        try? JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed) as? NSObject
    }
    guard let one = canonical(one), let other = canonical(other) else { return false }
    return one == other
}

/// A key with any text.
struct AnyKey: CodingKey, ExpressibleByStringLiteral {
    var stringValue: String
    var intValue: Int?

    init(stringLiteral value: String) { stringValue = value }
    init(stringValue: String) { self.stringValue = stringValue }
    init(intValue: Int) { (stringValue, self.intValue) = (String(intValue), intValue) }
}

/// Encodes itself by a closure.
struct Encoded: Encodable {
    let body: (any Encoder) throws -> Void

    init(_ body: @escaping (any Encoder) throws -> Void) { self.body = body }
    func encode(to encoder: any Encoder) throws { try body(encoder) }
}

/// Decodes itself by a closure, the `body` in the decoder's user info.
struct Decoded: Decodable {
    typealias Body = @Sendable (any Decoder) throws -> String

    let text: String

    init(from decoder: any Decoder) throws { text = try (decoder.userInfo[.body] as! Body)(decoder) }
}

extension CodingUserInfoKey { static let body = CodingUserInfoKey(rawValue: "body")! }

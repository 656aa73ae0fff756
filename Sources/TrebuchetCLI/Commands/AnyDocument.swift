import Commands
import TrebuchetServices

/// A document of any collection.
struct AnyDocument: Codable, Identifiable, Equatable, Sendable {
    let id: String
    private(set) var value: JSONValue

    init(_ value: JSONValue) throws(UsageError) {
        guard let id = try Self.fields(value)["id"].flatMap(Self.id) else {
            throw UsageError("a document needs a member id, a text or a whole number")
        }
        self.id = id
        self.value = value
    }

    /// A text, or a whole number; nil for anything else.
    static func id(_ value: JSONValue) -> String? {
        switch value {
        case .string(let id): id
        case .integer(let id): String(id)
        default: nil
        }
    }

    /// An id that nothing else has: 26 letters and digits by chance, which no shell takes for anything else.
    static func newID() -> String {
        let alphabet = Array("0123456789abcdefghijklmnopqrstuvwxyz")
        var random = SystemRandomNumberGenerator()
        return String((0..<26).map { _ in alphabet[Int.random(in: alphabet.indices, using: &random)] })
    }

    static func fields(_ value: JSONValue) throws(UsageError) -> JSONObject {
        guard case .object(let fields) = value else { throw UsageError("give a JSON object, as '{\"id\":\"1\"}'") }
        return fields
    }

    /// Null takes a field away.
    mutating func set(_ changes: JSONObject) {
        guard case .object(var fields) = value else { return }
        for (name, change) in changes { fields[name] = change == .null ? nil : change }
        value = .object(fields)
    }

    init(from decoder: any Decoder) throws {
        let value = try JSONValue(from: decoder)
        do {
            try self.init(value)
        } catch {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(codingPath: decoder.codingPath, debugDescription: "\(error)"))
        }
    }

    func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
}

import Commands
import TrebuchetServices

/// A document of any collection.
struct AnyDocument: Codable, Identifiable, Equatable, Sendable {
    let id: String
    private(set) var value: JSONValue

    init(_ value: JSONValue) throws(UsageError) {
        guard let id = try Self.fields(value)["id"].flatMap(Self.id) else {
            throw UsageError("a document needs the member 'id', a string or an integer")
        }
        self.id = id
        self.value = value
    }

    /// Returns the id of a string or an integer; nil for anything else.
    static func id(_ value: JSONValue) -> String? {
        switch value {
        case .string(let id): id
        case .integer(let id): String(id)
        default: nil
        }
    }

    /// Returns a random unique id of 26 letters and digits, which needs no quotes in a shell.
    static func newID() -> String {
        let alphabet = Array("0123456789abcdefghijklmnopqrstuvwxyz")
        var random = SystemRandomNumberGenerator()
        return String((0..<26).map { _ in alphabet[Int.random(in: alphabet.indices, using: &random)] })
    }

    static func fields(_ value: JSONValue) throws(UsageError) -> JSONObject {
        guard case .object(let fields) = value else {
            throw UsageError("the document or its fields must be a JSON object, such as '{\"id\":\"1\"}'")
        }
        return fields
    }

    /// Sets fields; null removes a field.
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

import Foundation
import Trebuchet

/// The collection and the room of the writers, and their wire format.
enum Writing {
    static let collection = "collections/entries"
    static let roomType = "office"
    static let room = "hall"
    static let topic = "talk"
    /// The document whose `sum` all writers increment; it comes first among all.
    static let shared = "0"
    /// Documents of a collection, and events that a room remembers, are fewer than may be.
    static let mostMutations = 2_000
    static let mostEvents = 50

    static func document(_ writer: Int, _ number: Int) -> String { "\(writer).\(number)" }

    /// Every other mutation increments the shared document; the others create one each.
    static func isIncrement(_ number: Int) -> Bool { number % 2 == 0 }

    static func mutation(_ writer: Int, _ number: Int) -> String {
        let id = document(writer, number)
        let command =
            isIncrement(number)
            ? #"{"increment":{"id":"\#(shared)","field":"sum","by":1}}"#
            : #"{"create":{"id":"\#(id)","fields":{"id":"\#(id)"}}}"#
        return #"{"number":\#(number),"command":\#(command)}"#
    }

    /// The outcome of a mutation.
    struct Outcome: Decodable {
        let number: Int
        let revision: Int
        let error: Refusal?
    }

    /// Whatever it is.
    struct Refusal: Decodable, CustomStringConvertible {
        let description: String

        init(from decoder: any Decoder) throws {
            description = try decoder.container(keyedBy: AnyKey.self).allKeys.map(\.stringValue).joined()
        }
    }

    struct Document: Decodable {
        struct Fields: Decodable { let sum: Int? }

        let id: String
        let fields: Fields
        let created: Int
        let revision: Int
    }

    struct Result: Decodable {
        let revision: Int
        let hasMore: Bool?
        let documents: [Document]
    }

    struct Opened: Decodable { let view: String }

    struct AnyKey: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init?(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    static func decode<Value: Decodable>(_ type: Value.Type, _ bytes: [UInt8]?) throws -> Value {
        try JSONDecoder().decode(type, from: Data(bytes ?? []))
    }

    /// Returns whether a call with this error may be repeated (Docs/Reference/ServicesProtocol.md).
    static func mayBeRepeated(_ error: any Error) -> Bool {
        guard let error = error as? TrebuchetError else { return false }
        let passing: [TrebuchetError.Code] = [.rateLimited, .timeout, .internal, .unavailable, .unknownOutcome]
        return passing.contains(error.code) || passingRefusals.contains(refusal(error))
    }

    private static let passingRefusals = ["storeFailed", "unknownOutcome", "closed", "rateLimited"]

    /// Returns whether the collection was moving to its next owner: nothing was done, and the call is repeated at once.
    static func isClosed(_ error: any Error) -> Bool { (error as? TrebuchetError).map(refusal) == "closed" }

    /// The name of the case of an error that the collection has thrown; empty for other errors.
    private static func refusal(_ error: TrebuchetError) -> String {
        (try? decode(Refusal.self, error.data))?.description ?? ""
    }
}

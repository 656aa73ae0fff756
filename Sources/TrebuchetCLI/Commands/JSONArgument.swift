import Bytes
import TrebuchetServices
import TrebuchetWire

/// JSON in arguments and in what is printed.
enum JSONArgument {
    static func value(_ text: String) throws(UsageError) -> JSONValue {
        do {
            return try Array(text.utf8).withUnsafeBytes {
                try ValueCoder(version: .v3).decode(JSONValue.self, from: $0)
            }
        } catch {
            throw UsageError("argument \(text) is not JSON; a text needs its quotes: '\"\(text)\"'")
        }
    }

    /// JSON on one line, the members of objects by their names: the same value prints the same text.
    static func text(_ value: JSONValue) -> String {
        switch value {
        case .object(let members):
            let members = members.sorted { $0.key < $1.key }.map { "\(text(.string($0.key))):\(text($0.value))" }
            return "{\(members.joined(separator: ","))}"
        case .array(let elements): return "[\(elements.map(text).joined(separator: ","))]"
        default:
            var buffer = ByteBuffer()
            // JSON always has a form in JSON.
            try? ValueCoder(version: .v3).encode(value, into: &buffer)
            return String(decoding: buffer.bytes, as: UTF8.self)
        }
    }
}

import Commands
import Bytes
import TrebuchetServices
import TrebuchetWire

/// JSON in arguments and in what is printed.
enum JSONArgument {
    static func value(_ text: String) throws(UsageError) -> JSONValue {
        do {
            return try Array(text.utf8).withUnsafeBytes {
                try ValueCoder().decode(JSONValue.self, from: $0)
            }
        } catch {
            throw UsageError("argument \(text) is not JSON; a text needs its quotes: '\"\(text)\"'")
        }
    }

    /// Throws what is wrong with it.
    static func value(_ bytes: UnsafeRawBufferPointer) throws -> JSONValue { try JSONValue(json: bytes) }

    /// JSON on one line, the members of objects by their names: the same value prints the same text.
    static func text(_ value: JSONValue) -> String {
        var buffer = ByteBuffer()
        value.write(json: &buffer)
        return String(decoding: buffer.bytes, as: UTF8.self)
    }
}

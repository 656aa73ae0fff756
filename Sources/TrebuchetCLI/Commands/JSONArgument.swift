import Commands
import Bytes
import TrebuchetServices
import TrebuchetWire

/// JSON in arguments and in output.
enum JSONArgument {
    static func value(_ text: String) throws(UsageError) -> JSONValue {
        do {
            return try Array(text.utf8).withUnsafeBytes {
                try ValueCoder().decode(JSONValue.self, from: $0)
            }
        } catch {
            throw UsageError("argument \(text) is not JSON; a string needs quotes: '\"\(text)\"'")
        }
    }

    /// Parses JSON; throws an error that describes the problem.
    static func value(_ bytes: UnsafeRawBufferPointer) throws -> JSONValue { try JSONValue(json: bytes) }

    /// Returns JSON on one line with sorted members, so that equal values have equal text.
    static func text(_ value: JSONValue) -> String {
        var buffer = ByteBuffer()
        value.write(json: &buffer)
        return String(decoding: buffer.bytes, as: UTF8.self)
    }
}

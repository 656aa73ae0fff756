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
            throw invalid(text)
        }
    }

    /// Returns the error of an argument that is not JSON: the position of the mistake, or the quotes that a string lacks.
    static func invalid(_ text: String) -> UsageError {
        guard let first = text.utf8.first(where: { $0 != UInt8(ascii: " ") }), "{[\"".utf8.contains(first) else {
            return UsageError("argument '\(text)' is not JSON; a string needs quotes: '\"\(text)\"'")
        }
        let bytes = Array(text.utf8)
        let problem = bytes.withUnsafeBytes { bytes in
            do {
                _ = try value(bytes)
                return ""
            } catch {
                return ": \(error)"
            }
        }
        return UsageError("argument '\(text)' is not valid JSON\(problem)")
    }

    /// Parses JSON; throws an error that describes the problem.
    static func value(_ bytes: UnsafeRawBufferPointer) throws -> JSONValue {
        do {
            return try JSONValue(json: bytes)
        } catch let error as ValueError {
            // The name of the type says nothing to a user.
            throw ValueError(String("\(error)".trimmingPrefix("JSONValue does not decode: ")))
        }
    }

    /// Returns JSON on one line with sorted members, so that equal values have equal text.
    static func text(_ value: JSONValue) -> String {
        var buffer = ByteBuffer()
        value.write(json: &buffer)
        return String(decoding: buffer.bytes, as: UTF8.self)
    }
}

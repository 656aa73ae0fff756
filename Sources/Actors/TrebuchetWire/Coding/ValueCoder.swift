package import Bytes

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// Encodes and decodes the values of arguments, results and states.
///
/// Numbers, strings and similar types are handled here. Other types use their `Codable` conformance with a `JSONWriter` and a
/// `JSONReader`, which are reused.
///
/// `@unchecked Sendable`: one thread at a time uses it. A reactor has its own coder; other code takes one from a pool and returns
/// it.
package final class ValueCoder: @unchecked Sendable {
    package let userInfo: [CodingUserInfoKey: any Sendable]
    // Unchecked access: while the writer or the reader is in use, `isWriting` or `isReading` excludes any other use.
    @exclusivity(unchecked) private var writer: JSONWriter?
    @exclusivity(unchecked) private var reader: JSONReader?
    /// True while the writer is in use: encoding a value may encode another one.
    @exclusivity(unchecked) private var isWriting = false
    /// True while the reader is in use.
    @exclusivity(unchecked) private var isReading = false

    package init(userInfo: [CodingUserInfoKey: any Sendable] = [:]) { self.userInfo = userInfo }

    // MARK: Writing

    /// Appends a value as JSON. Throws `EncodingError`.
    package func encode<Value: Encodable>(_ value: Value, into buffer: inout ByteBuffer) throws {
        if Value.self == Int.self { return encode(value as! Int, into: &buffer) }
        if Value.self == String.self { return encode(value as! String, into: &buffer) }
        if Value.self == Bool.self { return encode(value as! Bool, into: &buffer) }
        if Value.self == Double.self { return try encode(value as! Double, into: &buffer) }
        guard !isWriting else { return try newWriter().encode(value, into: &buffer) }
        if writer == nil { writer = newWriter() }
        isWriting = true
        defer { isWriting = false }
        // The property is not replaced while the writer is in use.
        try Unmanaged.passUnretained(writer.unsafelyUnwrapped)._withUnsafeGuaranteedRef { writer in
            try writer.encode(value, into: &buffer)
        }
    }

    private func newWriter() -> JSONWriter { JSONWriter(userInfo: userInfo, isPooling: true) }

    package func encode(_ value: Int, into buffer: inout ByteBuffer) { buffer.append(decimal: Int64(value)) }

    package func encode(_ value: String, into buffer: inout ByteBuffer) { JSONString.append(value, to: &buffer) }

    package func encode(_ value: Bool, into buffer: inout ByteBuffer) {
        if value { buffer.append("true" as StaticString) } else { buffer.append("false" as StaticString) }
    }

    package func encode(_ value: Double, into buffer: inout ByteBuffer) throws {
        guard value.isFinite else {
            throw EncodingError.invalidValue(
                value, .init(codingPath: [], debugDescription: "\(value) cannot be represented in JSON"))
        }
        JSONNumber.append(value, to: &buffer)
    }

    // MARK: Reading

    /// Decodes a value from JSON. Throws `ValueError`.
    package func decode<Value: Decodable>(_ type: Value.Type, from bytes: UnsafeRawBufferPointer) throws -> Value {
        if type == Int.self { return try decode(Int.self, from: bytes) as! Value }
        if type == String.self { return try decode(String.self, from: bytes) as! Value }
        if type == Bool.self { return try decode(Bool.self, from: bytes) as! Value }
        return try decodeAsType(type, from: bytes)
    }

    package func decode(_ type: Int.Type, from bytes: UnsafeRawBufferPointer) throws -> Int {
        if let value = JSONNumber.int(bytes) { return value }
        return try decodeAsType(type, from: bytes)
    }

    package func decode(_ type: String.Type, from bytes: UnsafeRawBufferPointer) throws -> String {
        guard bytes.count >= 2, bytes[0] == 0x22, bytes[bytes.count - 1] == 0x22 else {
            return try decodeAsType(type, from: bytes)
        }
        let inner = UnsafeRawBufferPointer(rebasing: bytes[1..<bytes.count - 1])
        guard !inner.contains(0x5C), inner.allSatisfy({ $0 >= 0x20 && $0 != 0x22 }) else {
            return try decodeAsType(type, from: bytes)
        }
        return String(decoding: inner, as: UTF8.self)
    }

    package func decode(_ type: Bool.Type, from bytes: UnsafeRawBufferPointer) throws -> Bool {
        if bytes.equals("true") { return true }
        if bytes.equals("false") { return false }
        return try decodeAsType(type, from: bytes)
    }

    package func decode(_ type: Double.Type, from bytes: UnsafeRawBufferPointer) throws -> Double {
        if let value = JSONNumber.int(bytes), value.magnitude < 1 << 53, bytes[0] != 0x2D { return Double(value) }
        return try decodeAsType(type, from: bytes)
    }

    private func decodeAsType<Value: Decodable>(
        _ type: Value.Type, from bytes: UnsafeRawBufferPointer
    ) throws -> Value {
        guard bytes.count > 0 else { throw ValueError("the value is missing") }
        guard !isReading else {
            var reader: JSONReader? = JSONReader(userInfo: userInfo)
            return try decode(type, from: bytes, by: &reader)
        }
        if reader == nil { reader = JSONReader(userInfo: userInfo) }
        isReading = true
        defer { isReading = false }
        return try decode(type, from: bytes, by: &reader)
    }

    /// Decodes a value.
    ///
    /// - Parameter reader: the reader to use; nil afterwards if it is retained elsewhere.
    @inline(__always)
    private func decode<Value: Decodable>(
        _ type: Value.Type, from bytes: UnsafeRawBufferPointer, by reader: inout JSONReader?
    ) throws -> Value {
        defer {
            reader.unsafelyUnwrapped.keyed.removeRetained()
            // A retained decoder must not read later values.
            let isRetained = !isKnownUniquelyReferenced(&reader)
            reader.unsafelyUnwrapped.close(isRetained: isRetained)
            if isRetained { reader = nil }
        }
        do {
            return try Unmanaged.passUnretained(reader.unsafelyUnwrapped)._withUnsafeGuaranteedRef { reader in
                try reader.decode(type, from: bytes)
            }
        } catch let error as DecodingError {
            throw ValueError(error, expected: type, bytes)
        }
    }
}

/// The text form of dates in the protocol: `2026-01-01T00:00:00.000Z`.
enum DateText {
    static func append(_ date: Date, to buffer: inout ByteBuffer) {
        let milliseconds = (date.timeIntervalSince1970 * 1000).rounded()
        // Dates outside the years with four digits are clamped.
        let clamped = Int64(min(max(milliseconds, -62_167_219_200_000), 253_402_300_799_999))
        let seconds = clamped >= 0 ? clamped / 1000 : (clamped - 999) / 1000
        ISO8601.append(seconds: seconds, milliseconds: Int(clamped - seconds * 1000), to: &buffer)
    }
}

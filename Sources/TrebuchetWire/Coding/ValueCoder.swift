package import Bytes

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// Writes and reads the values of arguments, results and states.
///
/// Numbers, strings and the like are written and read here, everything else as it encodes and decodes itself: by a `JSONWriter`
/// and a `JSONReader`, which it keeps.
///
/// `@unchecked Sendable`: it is used by one thread at a time. A reactor keeps its own; others are taken from a pool, used
/// and given back.
package final class ValueCoder: @unchecked Sendable {
    let dates: DateForm
    private let userInfo: [CodingUserInfoKey: any Sendable]
    // Access to these is not checked: while one of the first two is in use, the one below it that says so keeps all others away.
    @exclusivity(unchecked) private var writer: JSONWriter?
    @exclusivity(unchecked) private var reader: JSONReader?
    /// Whether the writer is in use: a value may have another one encoded while it encodes itself.
    @exclusivity(unchecked) private var isWriting = false
    /// The reader, too.
    @exclusivity(unchecked) private var isReading = false

    package init(dates: DateForm = .milliseconds, userInfo: [CodingUserInfoKey: any Sendable] = [:]) {
        self.dates = dates
        self.userInfo = userInfo
    }

    // MARK: Writing

    /// Writes a value as JSON. Throws `EncodingError`.
    package func encode<Value: Encodable>(_ value: Value, into buffer: inout ByteBuffer) throws {
        if Value.self == Int.self { return encode(value as! Int, into: &buffer) }
        if Value.self == String.self { return encode(value as! String, into: &buffer) }
        if Value.self == Bool.self { return encode(value as! Bool, into: &buffer) }
        if Value.self == Double.self { return try encode(value as! Double, into: &buffer) }
        guard !isWriting else { return try newWriter().encode(value, into: &buffer) }
        if writer == nil { writer = newWriter() }
        isWriting = true
        defer { isWriting = false }
        // Nobody takes it from here while it is in use.
        try Unmanaged.passUnretained(writer.unsafelyUnwrapped)._withUnsafeGuaranteedRef { writer in
            try writer.encode(value, into: &buffer)
        }
    }

    private func newWriter() -> JSONWriter { JSONWriter(dates: dates, userInfo: userInfo, isPooling: true) }

    package func encode(_ value: Int, into buffer: inout ByteBuffer) { buffer.append(decimal: Int64(value)) }

    package func encode(_ value: String, into buffer: inout ByteBuffer) { JSONString.append(value, to: &buffer) }

    package func encode(_ value: Bool, into buffer: inout ByteBuffer) {
        if value { buffer.append("true" as StaticString) } else { buffer.append("false" as StaticString) }
    }

    package func encode(_ value: Double, into buffer: inout ByteBuffer) throws {
        guard value.isFinite else {
            throw EncodingError.invalidValue(
                value, .init(codingPath: [], debugDescription: "\(value) has no form in JSON"))
        }
        JSONNumber.append(value, to: &buffer)
    }

    // MARK: Reading

    /// Reads a value from JSON. Throws `ValueError`.
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
        guard bytes.count > 0 else { throw ValueError("there is no value") }
        guard !isReading else {
            var reader: JSONReader? = JSONReader(userInfo: userInfo)
            return try decode(type, from: bytes, by: &reader)
        }
        if reader == nil { reader = JSONReader(userInfo: userInfo) }
        isReading = true
        defer { isReading = false }
        return try decode(type, from: bytes, by: &reader)
    }

    /// - Parameter reader: the one to read with; nil afterwards, when somebody still holds it.
    @inline(__always)
    private func decode<Value: Decodable>(
        _ type: Value.Type, from bytes: UnsafeRawBufferPointer, by reader: inout JSONReader?
    ) throws -> Value {
        defer {
            reader.unsafelyUnwrapped.keyed.end()
            // Somebody who kept a decoder must not read what is decoded next.
            let isHeld = !isKnownUniquelyReferenced(&reader)
            reader.unsafelyUnwrapped.close(isHeld: isHeld)
            if isHeld { reader = nil }
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

/// How dates inside of values are written. Read are both, everywhere.
///
/// It is all that the encoding of values differs in between the versions, and no translator can put it right afterwards: in JSON a date
/// looks as a text does that says the same, and texts are not to be changed. So whoever encodes for a client of version 1 or 2
/// has to know.
package enum DateForm: Sendable {
    /// `2026-01-01T00:00:00.000Z`
    case milliseconds
    /// `2026-01-01T00:00:00Z`, for clients of versions 1 and 2: theirs read no fraction.
    case wholeSeconds
}

/// A date as text of the protocol.
enum DateText {
    static func append(_ date: Date, _ form: DateForm, to buffer: inout ByteBuffer) {
        let milliseconds = (date.timeIntervalSince1970 * 1000).rounded()
        // Outside of the years that four digits can tell, the nearest that can.
        let clamped = Int64(min(max(milliseconds, -62_167_219_200_000), 253_402_300_799_999))
        let seconds = clamped >= 0 ? clamped / 1000 : (clamped - 999) / 1000
        ISO8601.append(
            seconds: seconds, milliseconds: form == .milliseconds ? Int(clamped - seconds * 1000) : nil, to: &buffer)
    }
}

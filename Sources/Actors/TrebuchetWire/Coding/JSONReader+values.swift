internal import Bytes

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// Direct decoding of common types, without calling their `init(from:)`.
extension JSONReader {
    /// Reads a value inside a container, or in place of another (-1). Types are distinguished by size first, because few have the
    /// same.
    @inline(__always)
    func read<Value: Decodable>(_ type: Value.Type, _ mark: Int, in container: Int, _ step: Int) throws -> Value {
        switch MemoryLayout<Value>.size {
        case 1:
            if type == Bool.self { return TypeIdentityCast.cast(try bool(mark), to: type) }
            if type == UInt8.self { return TypeIdentityCast.cast(try integer(UInt8.self, mark), to: type) }
            if type == Int8.self { return TypeIdentityCast.cast(try integer(Int8.self, mark), to: type) }
        case 4:
            if type == Float.self { return TypeIdentityCast.cast(try float(mark), to: type) }
            if type == Int32.self { return TypeIdentityCast.cast(try integer(Int32.self, mark), to: type) }
            if type == UInt32.self { return TypeIdentityCast.cast(try integer(UInt32.self, mark), to: type) }
        case 8:
            if type == Int.self { return TypeIdentityCast.cast(try integer(Int.self, mark), to: type) }
            if type == Double.self { return TypeIdentityCast.cast(try double(mark), to: type) }
            if type == Date.self { return TypeIdentityCast.cast(try date(mark), to: type) }
            if type == Int64.self { return TypeIdentityCast.cast(try integer(Int64.self, mark), to: type) }
            if type == UInt64.self { return TypeIdentityCast.cast(try integer(UInt64.self, mark), to: type) }
            if type == UInt.self { return TypeIdentityCast.cast(try integer(UInt.self, mark), to: type) }
            if let array = arrays.array(type) { return try readArray(array, mark) }
        case 16:
            if type == String.self { return TypeIdentityCast.cast(try string(mark), to: type) }
            if type == UUID.self { return TypeIdentityCast.cast(try uuid(mark), to: type) }
        default: break
        }
        // The sizes of these types are defined by Foundation.
        if type == URL.self { return TypeIdentityCast.cast(try url(mark), to: type) }
        if type == Data.self { return TypeIdentityCast.cast(try data(mark), to: type) }
        if type == Decimal.self { return TypeIdentityCast.cast(try decimal(mark), to: type) }
        return try decodeScope(type, mark, in: container, step)
    }

    private func readArray<Value>(_ array: any ReadableArray.Type, _ mark: Int) throws -> Value {
        // An array has the size of a word.
        var word: UInt = 0
        return try withUnsafeMutableBytes(of: &word) { memory in
            try array.read(self, mark, into: memory.baseAddress!)
            return memory.baseAddress!.assumingMemoryBound(to: Value.self).move()
        }
    }

    /// Returns whether values of a type are decoded here differently from their `init(from:)`.
    @inline(__always)
    static func isReadHere(_ type: Any.Type) -> Bool {
        type == Date.self || type == URL.self || type == Data.self || type == Decimal.self
    }

    // MARK: Literals and strings

    func bool(_ mark: Int) throws -> Bool {
        switch first(mark) {
        case UInt8(ascii: "t"): return true
        case UInt8(ascii: "f"): return false
        default: throw mismatch(Bool.self, mark)
        }
    }

    func string(_ mark: Int) throws -> String {
        guard first(mark) == 0x22 else { throw mismatch(String.self, mark) }
        let bytes = inner(mark)
        if !self.mark(mark).isEscaped, JSONString.isASCII(bytes) { return String(decoding: bytes, as: UTF8.self) }
        return try validated(mark)
    }

    private func validated(_ mark: Int) throws -> String {
        let text =
            self.mark(mark).isEscaped
            ? String(validating: JSONString.unescaped(inner(mark)), as: UTF8.self)
            : String(validating: inner(mark), as: UTF8.self)
        guard let text else { throw corrupted(mark, "the text is not valid UTF-8") }
        return text
    }

    private func date(_ mark: Int) throws -> Date {
        guard first(mark) == 0x22 else { throw mismatch(String.self, mark) }
        if !self.mark(mark).isEscaped, let seconds = ISO8601.seconds(inner(mark)) {
            return Date(timeIntervalSince1970: seconds)
        }
        let text = try string(mark)
        guard let seconds = ISO8601.seconds(text) else { throw corrupted(mark, "'\(text)' is not an ISO 8601 date") }
        return Date(timeIntervalSince1970: seconds)
    }

    private func uuid(_ mark: Int) throws -> UUID {
        guard first(mark) == 0x22 else { throw mismatch(String.self, mark) }
        let text = inner(mark)
        if !self.mark(mark).isEscaped, let bytes = UUIDText.bytes(text) { return UUID(uuid: bytes) }
        guard let uuid = UUID(uuidString: try string(mark)) else {
            throw corrupted(mark, "Attempted to decode UUID from invalid UUID string.")
        }
        return uuid
    }

    private func url(_ mark: Int) throws -> URL {
        guard let url = URL(string: try string(mark)) else { throw corrupted(mark, "Invalid URL string.") }
        return url
    }

    private func data(_ mark: Int) throws -> Data {
        guard first(mark) == 0x22 else { throw mismatch(String.self, mark) }
        var bytes = ByteBuffer()
        if !self.mark(mark).isEscaped, Base64.decode(inner(mark), into: &bytes) { return Data(bytes.bytes) }
        // Foundation accepts some text with unusual padding.
        guard let data = Data(base64Encoded: try string(mark)) else {
            throw corrupted(mark, "Encountered Data is not valid Base64.")
        }
        return data
    }

    // MARK: Numbers

    @inline(__always)
    private func isNumber(_ mark: Int) -> Bool {
        let first = first(mark)
        return first == 0x2D || first &- 0x30 < 10
    }

    @inline(__always)
    func integer<Integer: FixedWidthInteger>(_ type: Integer.Type, _ mark: Int) throws -> Integer {
        guard isNumber(mark) else { throw mismatch(type, mark) }
        if let short = JSONNumber.int(bytes(mark)), let value = Integer(exactly: short) { return value }
        guard let value = JSONNumber.integer(type, bytes(mark)) else { throw typeMismatch(type, mark) }
        return value
    }

    func double(_ mark: Int) throws -> Double {
        guard isNumber(mark) else { throw mismatch(Double.self, mark) }
        if let short = JSONNumber.shortDouble(bytes(mark)) { return short }
        guard let value = JSONNumber.double(bytes(mark)) else { throw typeMismatch(Double.self, mark) }
        return value
    }

    func float(_ mark: Int) throws -> Float {
        guard isNumber(mark) else { throw mismatch(Float.self, mark) }
        guard let value = JSONNumber.float(bytes(mark)) else { throw typeMismatch(Float.self, mark) }
        return value
    }

    private func decimal(_ mark: Int) throws -> Decimal {
        guard isNumber(mark) else { throw mismatch(Decimal.self, mark) }
        let text = String(decoding: bytes(mark), as: UTF8.self)
        guard let value = Decimal(string: text), !value.isNaN else { throw typeMismatch(Decimal.self, mark) }
        return value
    }

    // MARK: Errors

    /// Returns the error for a value of another kind than the type requires.
    func mismatch(_ type: Any.Type, _ mark: Int) -> DecodingError {
        let path = path(to: mark)
        guard !isNull(mark) else {
            return .valueNotFound(type, .init(codingPath: path, debugDescription: "expected \(type), found null"))
        }
        let kind =
            switch first(mark) {
            case 0x22: "a string"
            case 0x7B: "an object"
            case 0x5B: "an array"
            case UInt8(ascii: "t"), UInt8(ascii: "f"): "a Boolean"
            default: "a number"
            }
        return .typeMismatch(type, .init(codingPath: path, debugDescription: "expected \(type), found \(kind)"))
    }

    func corrupted(_ mark: Int, _ text: String) -> DecodingError {
        .dataCorrupted(.init(codingPath: path(to: mark), debugDescription: text))
    }

    /// Returns the error for a number that the type cannot represent.
    private func typeMismatch(_ type: any Any.Type, _ mark: Int) -> DecodingError {
        let path = path(to: mark)
        let text =
            if !path.isEmpty {
                "the number \(String(decoding: bytes(mark).prefix(32), as: UTF8.self)) does not fit into \(type)"
            } else if let parts = JSONNumber.parts(bytes(mark)), parts.exponent < 0, type is any BinaryInteger.Type {
                "\(type) accepts integers only"
            } else {
                "the number does not fit into \(type)"
            }
        return .dataCorrupted(.init(codingPath: path, debugDescription: text))
    }
}

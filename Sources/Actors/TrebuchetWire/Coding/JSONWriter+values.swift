internal import Bytes

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// Direct encoding of common types, without calling their `encode(to:)`.
extension JSONWriter {
    /// Writes a value. If it throws, the output is restored to `mark`, the state before the value's name.
    @inline(__always)
    func write<Value: Encodable>(_ value: Value, _ mark: Mark) throws {
        do {
            if try writeKnown(value) { return }
        } catch {
            undo(mark)
            throw error
        }
        try writeScope(value, mark)
    }

    /// Writes a value of a known type. Returns false for other types. Types are distinguished by size first, because few have the
    /// same.
    @inline(__always)
    func writeKnown<Value: Encodable>(_ value: Value) throws -> Bool {
        switch MemoryLayout<Value>.size {
        case 1:
            if let value = TypeIdentityCast.as(Bool.self, value) { return write(value) }
            if let value = TypeIdentityCast.as(UInt8.self, value) { return write(value) }
            if let value = TypeIdentityCast.as(Int8.self, value) { return write(value) }
        case 4:
            if let value = TypeIdentityCast.as(Float.self, value) { return try write(value) }
            if let value = TypeIdentityCast.as(Int32.self, value) { return write(value) }
            if let value = TypeIdentityCast.as(UInt32.self, value) { return write(value) }
        case 8:
            if let value = TypeIdentityCast.as(Int.self, value) { return write(value) }
            if let value = TypeIdentityCast.as(Double.self, value) { return try write(value) }
            if let value = TypeIdentityCast.as(Date.self, value) { return try write(value) }
            if let value = TypeIdentityCast.as(Int64.self, value) { return write(value) }
            if let value = TypeIdentityCast.as(UInt64.self, value) { return write(value) }
            if let value = TypeIdentityCast.as(UInt.self, value) { return write(value) }
        case 16:
            if let value = TypeIdentityCast.as(String.self, value) { return write(value) }
            if let value = TypeIdentityCast.as(UUID.self, value) { return write(value) }
        default: break
        }
        // The sizes of these types are defined by Foundation.
        if let value = TypeIdentityCast.as(URL.self, value) { return write(value.absoluteString) }
        if let value = TypeIdentityCast.as(Data.self, value) { return write(value) }
        if let value = TypeIdentityCast.as(Decimal.self, value) { return try write(value) }
        return false
    }

    // Each of these methods returns true, which keeps the calls above short.

    @discardableResult
    func write(_ value: Bool) -> Bool {
        if value { buffer.append("true" as StaticString) } else { buffer.append("false" as StaticString) }
        return true
    }

    @discardableResult
    func write(_ value: String) -> Bool {
        JSONString.append(value, to: &buffer)
        return true
    }

    @inline(__always)
    @discardableResult
    func write<Integer: FixedWidthInteger>(_ value: Integer) -> Bool {
        if Integer.bitWidth > 64 {
            buffer.append(utf8: value.description)
        } else if Integer.isSigned {
            buffer.append(decimal: Int64(truncatingIfNeeded: value))
        } else {
            buffer.append(decimal: UInt64(truncatingIfNeeded: value))
        }
        return true
    }

    private func write(_ value: Double) throws -> Bool {
        guard value.isFinite else { throw unrepresentable(value) }
        JSONNumber.append(value, to: &buffer)
        return true
    }

    private func write(_ value: Float) throws -> Bool {
        guard value.isFinite else { throw unrepresentable(value) }
        JSONNumber.append(value, to: &buffer)
        return true
    }

    private func write(_ value: Decimal) throws -> Bool {
        guard !value.isNaN else { throw unrepresentable(value) }
        buffer.append(utf8: value.description)
        return true
    }

    private func write(_ value: Data) -> Bool {
        buffer.append(0x22)
        value.withUnsafeBytes { Base64.encode($0, into: &buffer) }
        buffer.append(0x22)
        return true
    }

    private func write(_ value: Date) throws -> Bool {
        guard !value.timeIntervalSince1970.isNaN else { throw unrepresentable(value.timeIntervalSince1970) }
        buffer.append(0x22)
        DateText.append(value, to: &buffer)
        buffer.append(0x22)
        return true
    }

    private func write(_ value: UUID) -> Bool {
        UUIDText.append(value, to: &buffer)
        return true
    }

    func writeNull() { buffer.append("null" as StaticString) }

    /// Returns the error for a number without a JSON representation.
    func unrepresentable(_ value: any Sendable) -> EncodingError {
        // The name or the comma is written already, so the path to the current output is the path to the value.
        var path = top >= 0 ? path(to: frames[top].serial) ?? [] : []
        if top >= 0, let step = lastStep { path.append(step) }
        return .invalidValue(value, .init(codingPath: path, debugDescription: "\(value) cannot be represented in JSON"))
    }
}

/// Casts between types that are known to be identical.
enum TypeIdentityCast {
    /// Returns the value if it has exactly this type, otherwise nil.
    @inline(__always)
    static func `as`<KnownState, Value>(_ type: KnownState.Type, _ value: Value) -> KnownState? {
        Value.self == KnownState.self ? cast(value, to: type) : nil
    }

    /// Returns the value as its actual type, which the caller has checked.
    @inline(__always)
    static func cast<KnownState, Value>(_ value: Value, to type: KnownState.Type) -> KnownState {
        // The caller has checked that the types are identical; `as!` would do a runtime lookup each time.
        unsafeBitCast(value, to: KnownState.self)
    }
}

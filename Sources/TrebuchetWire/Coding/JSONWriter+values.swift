internal import Bytes

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// Values of the types that nearly all others are made of, without asking them to encode themselves.
extension JSONWriter {
    /// Writes a value. When it throws, all is as it was at `mark`, before the value's name.
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

    /// Whether the value was of a type that is known here, and is written. Asked by size first, since only a few are of the same.
    @inline(__always)
    func writeKnown<Value: Encodable>(_ value: Value) throws -> Bool {
        switch MemoryLayout<Value>.size {
        case 1:
            if let value = Same.as(Bool.self, value) { return write(value) }
            if let value = Same.as(UInt8.self, value) { return write(value) }
            if let value = Same.as(Int8.self, value) { return write(value) }
        case 4:
            if let value = Same.as(Float.self, value) { return try write(value) }
            if let value = Same.as(Int32.self, value) { return write(value) }
            if let value = Same.as(UInt32.self, value) { return write(value) }
        case 8:
            if let value = Same.as(Int.self, value) { return write(value) }
            if let value = Same.as(Double.self, value) { return try write(value) }
            if let value = Same.as(Date.self, value) { return try write(value) }
            if let value = Same.as(Int64.self, value) { return write(value) }
            if let value = Same.as(UInt64.self, value) { return write(value) }
            if let value = Same.as(UInt.self, value) { return write(value) }
        case 16:
            if let value = Same.as(String.self, value) { return write(value) }
            if let value = Same.as(UUID.self, value) { return write(value) }
        default: break
        }
        // Of what size these are is Foundation's affair.
        if let value = Same.as(URL.self, value) { return write(value.absoluteString) }
        if let value = Same.as(Data.self, value) { return write(value) }
        if let value = Same.as(Decimal.self, value) { return try write(value) }
        return false
    }

    // Each says that it has written the value, which is short where it is asked.

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
        guard value.isFinite else { throw formless(value) }
        JSONNumber.append(value, to: &buffer)
        return true
    }

    private func write(_ value: Float) throws -> Bool {
        guard value.isFinite else { throw formless(value) }
        JSONNumber.append(value, to: &buffer)
        return true
    }

    private func write(_ value: Decimal) throws -> Bool {
        guard !value.isNaN else { throw formless(value) }
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
        guard !value.timeIntervalSince1970.isNaN else { throw formless(value.timeIntervalSince1970) }
        buffer.append(0x22)
        DateText.append(value, dates, to: &buffer)
        buffer.append(0x22)
        return true
    }

    private func write(_ value: UUID) -> Bool {
        UUIDText.append(value, to: &buffer)
        return true
    }

    func writeNull() { buffer.append("null" as StaticString) }

    /// A number that JSON has no form of.
    func formless(_ value: any Sendable) -> EncodingError {
        // Its name or its comma is in the text already, so that the way to what is being written is the way to it.
        var path = top >= 0 ? path(to: frames[top].serial) ?? [] : []
        if top >= 0, let step = lastStep { path.append(step) }
        return .invalidValue(value, .init(codingPath: path, debugDescription: "\(value) has no form in JSON"))
    }
}

/// Values whose type turns out to be another one.
enum Same {
    /// The value, when it is of just that type; nil otherwise.
    @inline(__always)
    static func `as`<Known, Value>(_ type: Known.Type, _ value: Value) -> Known? {
        Value.self == Known.self ? cast(value, to: type) : nil
    }

    /// The value as of the type that it has, which the caller has seen.
    @inline(__always)
    static func cast<Known, Value>(_ value: Value, to type: Known.Type) -> Known {
        // To the type that it has, as has been seen; `as!` would look it up each time.
        unsafeBitCast(value, to: Known.self)
    }
}

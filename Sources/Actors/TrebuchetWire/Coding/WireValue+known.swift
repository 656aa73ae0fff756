internal import Bytes

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

// Conformances of common types. Each is encoded as by a `ValueCoder`.

extension Bool: _WireValue {
    public init(_wire reader: inout _WireReader) throws { self = try reader.bool() }

    public func _write(wire writer: inout _WireWriter) {
        if self {
            writer.buffer.pointee.append("true" as StaticString)
        } else {
            writer.buffer.pointee.append("false" as StaticString)
        }
    }
}

extension String: _WireValue {
    public init(_wire reader: inout _WireReader) throws { self = try reader.string() }

    public func _write(wire writer: inout _WireWriter) { JSONString.append(self, to: &writer.buffer.pointee) }
}

extension Double: _WireValue {
    public init(_wire reader: inout _WireReader) throws { self = try reader.double() }

    public func _write(wire writer: inout _WireWriter) throws {
        guard isFinite else { throw WireCodeFallback() }
        JSONNumber.append(self, to: &writer.buffer.pointee)
    }
}

extension Int: _WireValue {
    public init(_wire reader: inout _WireReader) throws { self = try reader.integer(Self.self) }

    public func _write(wire writer: inout _WireWriter) { writer.buffer.pointee.append(decimal: Int64(self)) }
}

extension Int8: _WireValue {
    public init(_wire reader: inout _WireReader) throws { self = try reader.integer(Self.self) }

    public func _write(wire writer: inout _WireWriter) { writer.buffer.pointee.append(decimal: Int64(self)) }
}

extension Int16: _WireValue {
    public init(_wire reader: inout _WireReader) throws { self = try reader.integer(Self.self) }

    public func _write(wire writer: inout _WireWriter) { writer.buffer.pointee.append(decimal: Int64(self)) }
}

extension Int32: _WireValue {
    public init(_wire reader: inout _WireReader) throws { self = try reader.integer(Self.self) }

    public func _write(wire writer: inout _WireWriter) { writer.buffer.pointee.append(decimal: Int64(self)) }
}

extension Int64: _WireValue {
    public init(_wire reader: inout _WireReader) throws { self = try reader.integer(Self.self) }

    public func _write(wire writer: inout _WireWriter) { writer.buffer.pointee.append(decimal: self) }
}

extension UInt: _WireValue {
    public init(_wire reader: inout _WireReader) throws { self = try reader.integer(Self.self) }

    public func _write(wire writer: inout _WireWriter) { writer.buffer.pointee.append(decimal: UInt64(self)) }
}

extension UInt8: _WireValue {
    public init(_wire reader: inout _WireReader) throws { self = try reader.integer(Self.self) }

    public func _write(wire writer: inout _WireWriter) { writer.buffer.pointee.append(decimal: UInt64(self)) }
}

extension UInt16: _WireValue {
    public init(_wire reader: inout _WireReader) throws { self = try reader.integer(Self.self) }

    public func _write(wire writer: inout _WireWriter) { writer.buffer.pointee.append(decimal: UInt64(self)) }
}

extension UInt32: _WireValue {
    public init(_wire reader: inout _WireReader) throws { self = try reader.integer(Self.self) }

    public func _write(wire writer: inout _WireWriter) { writer.buffer.pointee.append(decimal: UInt64(self)) }
}

extension UInt64: _WireValue {
    public init(_wire reader: inout _WireReader) throws { self = try reader.integer(Self.self) }

    public func _write(wire writer: inout _WireWriter) { writer.buffer.pointee.append(decimal: self) }
}

extension UUID: _WireValue {
    public init(_wire reader: inout _WireReader) throws {
        guard let bytes = UUIDText.bytes(try reader.plainString()) else { throw WireCodeFallback() }
        self.init(uuid: bytes)
    }

    public func _write(wire writer: inout _WireWriter) { UUIDText.append(self, to: &writer.buffer.pointee) }
}

extension Date: _WireValue {
    public init(_wire reader: inout _WireReader) throws {
        guard let seconds = ISO8601.seconds(try reader.plainString()) else { throw WireCodeFallback() }
        self.init(timeIntervalSince1970: seconds)
    }

    public func _write(wire writer: inout _WireWriter) throws {
        guard !timeIntervalSince1970.isNaN else { throw WireCodeFallback() }
        writer.buffer.pointee.append(0x22)
        DateText.append(self, to: &writer.buffer.pointee)
        writer.buffer.pointee.append(0x22)
    }
}

extension Optional: _WireValue where Wrapped: _WireValue {
    @inlinable
    public init(_wire reader: inout _WireReader) throws {
        self = reader.takeNull() ? nil : try Wrapped(_wire: &reader)
    }

    @inlinable
    public func _write(wire writer: inout _WireWriter) throws {
        if let self { try self._write(wire: &writer) } else { writer.null() }
    }
}

extension Array: _WireValue where Element: _WireValue {
    @inlinable
    public init(_wire reader: inout _WireReader) throws {
        self = []
        try reader.beginArray()
        var isFirst = true
        while try reader.hasElement(&isFirst) { append(try Element(_wire: &reader)) }
    }

    @inlinable
    public func _write(wire writer: inout _WireWriter) throws {
        try writer.beginArray()
        var isFirst = true
        for element in self {
            if !isFirst { writer.nextElement() }
            isFirst = false
            try element._write(wire: &writer)
        }
        writer.endArray()
    }
}

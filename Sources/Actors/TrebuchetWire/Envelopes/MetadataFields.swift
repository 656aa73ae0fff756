internal import Bytes

/// The `metadata` of a call or of the start of a stream: a JSON object whose members are strings.
///
/// A message whose metadata exceeds the limits is malformed.
package enum MetadataFields {
    /// The maximum number of fields.
    package static let maximumCount = 16
    /// The maximum size of the JSON object in bytes, quotes and punctuation included.
    package static let maximumBytes = 4_096
    /// The maximum length of a name in bytes.
    package static let maximumNameBytes = 64

    /// Returns whether a name has 1 to 64 characters, all of them of `a-z0-9-`.
    package static func isName(_ name: some Collection<UInt8>) -> Bool {
        !name.isEmpty && name.count <= maximumNameBytes
            && name.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2D }
    }

    /// Scans an object of fields, and returns its range.
    static func scan(_ cursor: inout JSONCursor) throws(EnvelopeError) -> ByteRange {
        guard cursor.consume(0x7B) else { throw cursor.error("expected an object of metadata") }
        let start = cursor.at - 1
        var names: [ByteRange] = []
        var isFirst = true
        while let name = try cursor.name(&isFirst) {
            let text = cursor.bytes(name)
            guard !name.isEscaped, isName(text) else {
                throw cursor.error("a name of metadata must be 1 to \(maximumNameBytes) characters of a-z, 0-9 and -")
            }
            guard names.count < maximumCount else { throw cursor.error("more than \(maximumCount) fields of metadata") }
            for other in names where cursor.bytes(other).elementsEqual(text) {
                throw cursor.error("duplicate field of metadata")
            }
            names.append(name)
            guard cursor.peek() == 0x22 else { throw cursor.error("a value of metadata must be a string") }
            _ = try cursor.string()
        }
        guard cursor.at - start <= maximumBytes else {
            throw cursor.error("more than \(maximumBytes) bytes of metadata")
        }
        return ByteRange(start, cursor.at - start)
    }

    /// Returns the fields of a scanned object.
    package static func fields(in object: UnsafeRawBufferPointer) -> [String: String] {
        var cursor = JSONCursor(object)
        var fields: [String: String] = [:]
        do throws(EnvelopeError) {
            var isFirst = true
            try cursor.expect(0x7B)
            while let name = try cursor.name(&isFirst) {
                let value = try cursor.string()
                fields[JSONString.text(cursor.bytes(name), isEscaped: name.isEscaped)] =
                    JSONString.text(cursor.bytes(value), isEscaped: value.isEscaped)
            }
        } catch {
            // The scanner accepts no such object.
            return [:]
        }
        return fields
    }

    /// Returns the object of fields, sorted by name. It may exceed the limits.
    package static func object(_ fields: [String: String]) -> [UInt8] {
        var buffer = ByteBuffer()
        buffer.append(0x7B)
        for (index, field) in fields.sorted(by: { $0.key < $1.key }).enumerated() {
            if index > 0 { buffer.append(0x2C) }
            JSONString.append(field.key, to: &buffer)
            buffer.append(0x3A)
            JSONString.append(field.value, to: &buffer)
        }
        buffer.append(0x7D)
        return Array(buffer.bytes)
    }
}

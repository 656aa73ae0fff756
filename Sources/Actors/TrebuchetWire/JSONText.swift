/// Operations on complete JSON texts.
package enum JSONText {
    /// Returns whether the bytes are one JSON value (RFC 8259) within the nesting limit of messages.
    package static func isValue(_ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { bytes in
            var cursor = JSONCursor(bytes)
            do throws(EnvelopeError) {
                _ = try cursor.value()
                try cursor.expectEnd()
                return true
            } catch {
                return false
            }
        }
    }
    /// Returns the elements of an array as text; nil for other values.
    package static func elements(_ bytes: [UInt8]) -> [[UInt8]]? {
        guard isValue(bytes) else { return nil }
        return bytes.withUnsafeBytes { bytes in
            var cursor = JSONCursor(bytes)
            var elements: [[UInt8]] = []
            do throws(EnvelopeError) {
                try cursor.expect(UInt8(ascii: "["))
                var isFirst = true
                while try cursor.hasElement(&isFirst) { elements.append(Array(cursor.bytes(try cursor.value()))) }
                return elements
            } catch {
                return nil
            }
        }
    }
}

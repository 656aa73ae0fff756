/// JSON as a whole.
package enum JSONText {
    /// Whether the bytes are one JSON value (RFC 8259), nested no deeper than a message may be.
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
    /// The parts of an array, as they stand there; nil of what is none.
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

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
}

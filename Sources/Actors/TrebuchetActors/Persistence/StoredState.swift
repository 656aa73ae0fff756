/// The stored bytes of one persisted state: its JSON, with the schema version as a prefix unless it is 1.
///
/// `{"todos":[]}` has version 1, `v2:{"todos":[]}` has version 2. No JSON begins with `v`.
package struct StoredState: Sendable {
    /// The bytes in the store.
    package let bytes: [UInt8]
    /// The schema version, from 1.
    package let version: Int
    private let start: Int

    /// The value without its version.
    package var json: ArraySlice<UInt8> { bytes[start...] }

    /// Parses stored bytes. Bytes that begin with `v` but contain no version are treated as JSON, which then fails to decode.
    package init(_ bytes: [UInt8]) {
        self.bytes = bytes
        guard bytes.first == UInt8(ascii: "v"), let colon = bytes.prefix(20).firstIndex(of: UInt8(ascii: ":")),
            let version = Int(String(decoding: bytes[1..<colon], as: UTF8.self)), version >= 1,
            bytes[1] != UInt8(ascii: "+")
        else {
            version = 1
            start = 0
            return
        }
        self.version = version
        start = colon + 1
    }

    /// Creates the stored bytes of a value.
    ///
    /// - Parameter version: the schema version, from 1.
    package init(version: Int, json: [UInt8]) {
        self.version = version
        let prefix = version > 1 ? Array("v\(version):".utf8) : []
        start = prefix.count
        bytes = prefix.isEmpty ? json : prefix + json
    }
}

/// What a store has of one persisted state: its JSON, with the version of its form before it where that is not the first.
///
/// `{"todos":[]}` is of version 1, `v2:{"todos":[]}` of version 2. No JSON begins with `v`.
package struct StoredState: Sendable {
    /// As they are in the store.
    package let bytes: [UInt8]
    /// From 1.
    package let version: Int
    private let start: Int

    /// The value without its version.
    package var json: ArraySlice<UInt8> { bytes[start...] }

    /// Reads what a store has. What begins with `v` and names no version is taken for JSON, which it is not.
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

    /// What is to be stored of a value.
    ///
    /// - Parameter version: from 1.
    package init(version: Int, json: [UInt8]) {
        self.version = version
        let prefix = version > 1 ? Array("v\(version):".utf8) : []
        start = prefix.count
        bytes = prefix.isEmpty ? json : prefix + json
    }
}

internal import CWebFiles

/// The files for browsers that the executable contains.
package enum WebFiles {
    /// The modules of the client library, by their names.
    package static var client: [String: [UInt8]] {
        let files = (0..<clientFileCount()).map { clientFile($0) }
        return Dictionary(files.map { (String(cString: $0.name), bytes($0)) }, uniquingKeysWith: { first, _ in first })
    }

    /// The page at `/` of `trebuchet serve`.
    static var start: [UInt8] { bytes(startPage()) }

    private static func bytes(_ file: WebFile) -> [UInt8] {
        Array(UnsafeBufferPointer(start: file.bytes, count: file.count))
    }
}

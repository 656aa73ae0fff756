/// An incremental scanner for the end of an HTTP head. It examines each byte once, and rejects the head at the first invalid byte
/// or exceeded limit (RFC 9112 §2.2, §5).
package struct HTTPHeadScanner {
    /// The result of a scan.
    package enum Result: Equatable {
        case incomplete
        /// The length of the head in bytes, including its empty line.
        case complete(Int)
        case rejection(HTTPRejection)
    }

    private let firstLineBytes: Int
    private let headBytes: Int
    private let fieldCount: Int
    private var scanned = 0
    private var lineStart = 0
    private var lines = 0
    private var sawReturn = false

    package init(limits: WebSocketLimits) {
        firstLineBytes = limits.requestLineBytes
        headBytes = limits.headerBytes
        fieldCount = limits.headerCount
    }

    /// Scans all bytes received so far, including those of earlier calls.
    package mutating func scan(_ bytes: UnsafeRawBufferPointer) -> Result {
        while scanned < bytes.count {
            let byte = bytes[scanned]
            if let rejection = checkLimits() { return .rejection(rejection) }
            scanned += 1
            if sawReturn {
                guard byte == 0x0A else { return .rejection(HTTPRejection(400, "carriage return without line feed")) }
                sawReturn = false
                if scanned - lineStart == 2 {
                    guard lines > 0 else { return .rejection(HTTPRejection(400, "empty request line")) }
                    return .complete(scanned)
                }
                lines += 1
                lineStart = scanned
            } else if byte == 0x0D {
                sawReturn = true
            } else if byte == 0x0A {
                return .rejection(HTTPRejection(400, "line feed without carriage return"))
            } else if !HTTPHeadParser.isFieldByte(byte) {
                return .rejection(HTTPRejection(400, "control character in the head"))
            }
        }
        return .incomplete
    }

    /// Checks the limits before the next byte.
    private func checkLimits() -> HTTPRejection? {
        if lines == 0, scanned - lineStart >= firstLineBytes + 2 {
            return HTTPRejection(414, "first line is over \(firstLineBytes) bytes")
        }
        if scanned >= headBytes { return HTTPRejection(431, "head is over \(headBytes) bytes") }
        // A line that starts after the first line and the allowed fields is one too many, unless it is empty.
        if lines > fieldCount, scanned - lineStart >= 1, !sawReturn {
            return HTTPRejection(431, "head has more than \(fieldCount) fields")
        }
        return nil
    }
}

package import Transports

/// The head of an HTTP response, as received by a client.
package struct HTTPResponseHead: Equatable {
    package let status: Int
    package let headers: HTTPHeaders

    /// Parses a complete head, including its empty line. Throws if it is not HTTP/1.x.
    package static func parse(_ bytes: UnsafeRawBufferPointer) throws(HTTPRejection) -> HTTPResponseHead {
        let (line, headers) = try HTTPHeadParser.parse(bytes)
        let parts = line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2 else { throw HTTPRejection(400, "status line is not version and status") }
        _ = try HTTPHeadParser.minorVersion(parts[0])
        guard parts[1].utf8.count == 3, let status = Int(parts[1]), (100...599).contains(status) else {
            throw HTTPRejection(400, "status is not a number of three digits")
        }
        return HTTPResponseHead(status: status, headers: headers)
    }
}

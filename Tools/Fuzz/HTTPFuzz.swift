import WebSockets

/// HTTP headers: the result does not depend on how the network splits the bytes, and an accepted field has no line break.
enum HTTPFuzz {
    static func run(_ input: [UInt8]) {
        var whole = HTTPHeadScanner(limits: WebSocketLimits())
        let result = input.withUnsafeBytes { whole.scan($0) }
        var growing = HTTPHeadScanner(limits: WebSocketLimits())
        var last = HTTPHeadScanner.Result.incomplete
        for count in input.indices {
            last = input.withUnsafeBytes { growing.scan(UnsafeRawBufferPointer(rebasing: $0[...count])) }
            if last != .incomplete { break }
        }
        precondition(last == result, "in one piece \(result), byte by byte \(last)")
        guard case .complete(let length) = result else { return }
        input.withUnsafeBytes { bytes in
            guard let head = try? HTTPRequestHead.parse(UnsafeRawBufferPointer(rebasing: bytes[..<length])) else {
                return
            }
            for field in head.headers.fields {
                precondition(!field.value.utf8.contains { $0 == 0x0D || $0 == 0x0A || $0 == 0 }, "a break in \(field)")
                precondition(!field.name.isEmpty && !field.name.contains(" "), "no name: \(field)")
            }
            precondition(head.headers.values("Host").count <= 1, "two hosts")
            _ = head.path
            _ = head.query
        }
    }
}

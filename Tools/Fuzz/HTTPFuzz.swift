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
        input.withUnsafeBytes { bytes in
            let head = try? HTTPRequestHead.parse(UnsafeRawBufferPointer(rebasing: bytes[..<length]), allowsBody: true)
            guard let head else { return }
            let rest = UnsafeRawBufferPointer(rebasing: bytes[length...])
            let (whole, single) = (read(rest, head.body, inPiecesOf: rest.count), read(rest, head.body, inPiecesOf: 1))
            precondition(whole == single, "in one piece \(whole), byte by byte \(single)")
        }
    }

    /// Reads a body in pieces; returns the body, the number of bytes that belong to it, and the status of a rejection.
    private static func read(
        _ bytes: UnsafeRawBufferPointer, _ framing: HTTPBodyFraming, inPiecesOf size: Int
    ) -> [[UInt8]] {
        let limits = HTTPBodyLimits(bytes: 1_000, time: .seconds(1), settings: ("bytes", "time"))
        var (body, used) = ([UInt8](), 0)
        do throws(HTTPRejection) {
            var reader = try HTTPBodyReader(framing, limits)
            while used < bytes.count, !reader.isComplete {
                let piece = UnsafeRawBufferPointer(rebasing: bytes[used..<min(used + size, bytes.count)])
                used += try reader.read(piece, into: &body)
            }
        } catch {
            // How much was read before the error depends on the pieces.
            return [Array("\(error.status)".utf8)]
        }
        precondition(body.count <= limits.bytes, "\(body.count) bytes")
        return [body, Array("\(used)".utf8)]
    }
}

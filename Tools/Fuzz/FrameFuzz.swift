import WebSockets

/// Frames: the result does not depend on how the network splits the bytes.
enum FrameFuzz {
    /// The first byte selects the role and the split, the rest is the connection.
    static func run(_ input: [UInt8]) {
        guard let choice = input.first else { return }
        let bytes = Array(input.dropFirst())
        let role: WebSocketRole = choice & 1 == 0 ? .server : .client
        let whole = events(bytes, role, piece: bytes.count)
        let cut = events(bytes, role, piece: 1 + Int(choice >> 1) % 17)
        precondition(whole == cut, "in one piece \(whole), split \(cut)")
    }

    private static func events(_ bytes: [UInt8], _ role: WebSocketRole, piece: Int) -> [String] {
        var limits = WebSocketLimits()
        limits.messageBytes = 4_096
        limits.frameBytes = 4_096
        limits.fragmentsPerMessage = 16
        var reader = MessageReader(role: role, limits: limits)
        var found: [String] = []
        var at = 0
        while at < bytes.count {
            var part = Array(bytes[at..<min(bytes.count, at + max(1, piece))])
            at += part.count
            let isOver = part.withUnsafeMutableBytes { part in
                var rest = part
                while true {
                    switch reader.next(&rest) {
                    case .needsMore:
                        precondition(rest.isEmpty, "the decoder requests more bytes, but leaves some unread")
                        return false
                    case .complete: preconditionFailure("no message is compressed or large")
                    case .message(let opcode, let payload): found.append("\(opcode) \(Array(payload))")
                    case .control(let opcode, let payload): found.append("\(opcode) \(Array(payload))")
                    case .violation(let violation):
                        found.append("\(violation.code)")
                        return true
                    }
                }
            }
            if isOver { break }
        }
        return found
    }
}

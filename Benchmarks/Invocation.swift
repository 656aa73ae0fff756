import Glibc
import WebSockets

/// Messages to a server, created without an encoder.
enum Invocation {
    static let subprotocol = "trebuchet.v3"

    /// - Parameters:
    ///   - arguments: as JSON.
    ///   - id: unique among the in-flight calls.
    static func text(_ actor: String, _ target: String, _ arguments: [String] = [], id: String = "c") -> String {
        #"{"type":"invocation","payload":{"callID":"\#(id)","actorID":"\#(actor)","targetIdentifier":"\#(target)","#
            + #""arguments":[\#(arguments.joined(separator: ","))]}}"#
    }
}

extension UnsafeRawBufferPointer {
    /// Returns the number after the first occurrence of `key` in a message, without decoding the message.
    func number(after key: StaticString) -> Int? {
        let length = key.utf8CodeUnitCount
        guard count > length else { return nil }
        let found = (0..<count - length).first { offset in
            self[offset] == key.utf8Start[0] && memcmp(baseAddress! + offset, key.utf8Start, length) == 0
        }
        guard var at = found.map({ $0 + length }) else { return nil }
        var value = 0
        while at < count, self[at] &- 0x30 < 10 {
            value = value * 10 + Int(self[at] - 0x30)
            at += 1
        }
        return value
    }
}

extension WebSocketLimits {
    /// Limits for results with many documents, and for the Autobahn suite, which sends messages of 16 MiB in up to 65,536
    /// fragments.
    static var wide: WebSocketLimits {
        var limits = WebSocketLimits()
        limits.messageBytes = 64 << 20
        limits.frameBytes = 64 << 20
        limits.fragmentsPerMessage = 1 << 20
        return limits
    }
}

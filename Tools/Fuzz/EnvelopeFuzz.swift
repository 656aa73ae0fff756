import Foundation
import TrebuchetWire

/// Envelopes: the scanner never crashes, its ranges lie in the message, and Foundation accepts the same JSON.
enum EnvelopeFuzz {
    static func run(_ input: [UInt8]) {
        var envelope = ScannedEnvelope()
        input.withUnsafeBytes { bytes in
            guard (try? envelope.scan(bytes)) != nil else { return }
            for range in envelope.arguments + [envelope.callID, envelope.result, envelope.data] where !range.isAbsent {
                precondition(range.offset >= 0 && Int(range.offset) + Int(range.count) <= bytes.count, "out of range")
            }
            _ = envelope.string(envelope.callID, in: bytes)
            _ = envelope.string(envelope.actorID, in: bytes)
        }
        // Foundation has other limits; only valid UTF-8 is compared.
        guard (try? input.withUnsafeBytes { try envelope.scan($0) }) != nil,
            String(validating: input, as: UTF8.self) != nil
        else { return }
        precondition((try? JSONSerialization.jsonObject(with: Data(input))) != nil, "Foundation rejects it")
    }
}

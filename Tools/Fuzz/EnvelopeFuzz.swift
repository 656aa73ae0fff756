import Foundation
import TrebuchetWire

/// Envelopes: nothing crashes, every range lies in the message, and what is taken is JSON to Foundation too.
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
        // Foundation has limits of its own; only UTF-8 is compared.
        guard (try? input.withUnsafeBytes { try envelope.scan($0) }) != nil,
            String(validating: input, as: UTF8.self) != nil
        else { return }
        precondition((try? JSONSerialization.jsonObject(with: Data(input))) != nil, "Foundation does not take it")
    }
}

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The conversion between a value and the bytes of a file.
struct FileCoding<Value: Sendable>: Sendable {
    let decode: @Sendable (Data) throws -> Value
    let encode: @Sendable (Value) throws -> Data
}

extension FileCoding where Value: Codable {
    /// JSON with sorted keys.
    static var json: Self {
        Self(decode: { try JSONDecoder().decode(Value.self, from: $0) }) { value in
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            return try encoder.encode(value)
        }
    }
}

/// A value that is not what the type needs.
package struct ValueError: Error, Sendable, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }

    /// Says which part of the value is wrong, and shows the beginning of the value.
    init(_ error: DecodingError, expected type: Any.Type, _ bytes: UnsafeRawBufferPointer) {
        let (context, problem): (DecodingError.Context, String?) =
            switch error {
            case .typeMismatch(let wanted, let context): (context, "expected \(wanted)")
            case .valueNotFound(let wanted, let context): (context, "expected \(wanted), found null")
            case .keyNotFound(let key, let context): (context, "missing '\(key.stringValue)'")
            case .dataCorrupted(let context): (context, nil)
            @unknown default: (DecodingError.Context(codingPath: [], debugDescription: "\(error)"), nil)
            }
        let path = context.codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(separator: ".")
        let found = String(decoding: bytes.prefix(60), as: UTF8.self) + (bytes.count > 60 ? "…" : "")
        description =
            "\(type) does not decode from \(found): \(problem ?? context.debugDescription)"
            + (path.isEmpty ? "" : " at \(path)")
    }
}

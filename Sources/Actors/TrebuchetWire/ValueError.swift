/// An error: a value does not have the form that the type requires.
package struct ValueError: Error, Sendable, CustomStringConvertible {
    package let description: String
    /// The path to the error, as far as known: member names, from the outermost in.
    package let path: [String]
    /// The required member that the object at `path` lacks; nil for other problems.
    package let missing: String?
    /// Path and missing member as one text, with element indices: `todos.0.title`. Empty for the value itself.
    package let member: String

    package init(_ description: String) {
        self.description = description
        path = []
        missing = nil
        member = ""
    }

    /// Creates the error with the location of the problem and the beginning of the value.
    init(_ error: DecodingError, expected type: Any.Type, _ bytes: UnsafeRawBufferPointer) {
        let (context, problem): (DecodingError.Context, String?) =
            switch error {
            case .typeMismatch(let wanted, let context): (context, "expected \(wanted)")
            case .valueNotFound(let wanted, let context): (context, "expected \(wanted), found null")
            case .keyNotFound(let key, let context): (context, "missing '\(key.stringValue)'")
            case .dataCorrupted(let context): (context, nil)
            @unknown default: (DecodingError.Context(codingPath: [], debugDescription: "\(error)"), nil)
            }
        self.path = context.codingPath.map(\.stringValue)
        missing = if case .keyNotFound(let key, _) = error { key.stringValue } else { nil }
        let path = context.codingPath.map(Self.step).joined(separator: ".")
        member = [path, missing ?? ""].filter { !$0.isEmpty }.joined(separator: ".")
        let found = String(decoding: bytes.prefix(60), as: UTF8.self) + (bytes.count > 60 ? "…" : "")
        description =
            "\(type) does not decode from \(found): \(problem ?? context.debugDescription)"
            + (path.isEmpty ? "" : " at \(path)")
    }

    /// Returns a step as text. Names may look like numbers: `007` is a key of a dictionary.
    private static func step(_ key: any CodingKey) -> String {
        guard let index = key.intValue, key.stringValue == "Index \(index)" else { return key.stringValue }
        return String(index)
    }
}

/// A diagnostic of the generator about a location in the sources.
package struct GeneratorDiagnostic: Error, Hashable, Sendable, CustomStringConvertible {
    /// The severity of a diagnostic. An error prevents the generation.
    package enum Severity: String, Sendable { case error, warning }

    package let severity: Severity
    package let location: SourcePosition?
    package let message: String

    /// Returns an error without a location.
    static func error(_ message: String) -> Self { Self(severity: .error, location: nil, message: message) }

    /// The text in the format of compilers, such as `Sources/App/Todo.swift:4:9: error: …`.
    package var description: String { (location.map { "\($0): " } ?? "") + "\(severity): \(message)" }
}

/// The diagnostics so far, without duplicates.
final class DiagnosticList {
    private var found: Set<GeneratorDiagnostic> = []

    func error(_ location: SourcePosition?, _ message: String) {
        found.insert(GeneratorDiagnostic(severity: .error, location: location, message: message))
    }

    func warn(_ location: SourcePosition?, _ message: String) {
        found.insert(GeneratorDiagnostic(severity: .warning, location: location, message: message))
    }

    var hasErrors: Bool { found.contains { $0.severity == .error } }

    /// The diagnostics in source order. Those without a location come first.
    var all: [GeneratorDiagnostic] {
        found.sorted { one, other in
            if one.location != other.location {
                guard let first = one.location else { return true }
                guard let second = other.location else { return false }
                return first < second
            }
            return one.message < other.message
        }
    }
}

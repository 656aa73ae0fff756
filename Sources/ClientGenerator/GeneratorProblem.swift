/// What the generator has to say about a place in the sources.
package struct GeneratorProblem: Hashable, Sendable, CustomStringConvertible {
    package enum Severity: String, Sendable { case error, warning }

    package let severity: Severity
    package let place: Place?
    package let message: String

    /// `Sources/App/Todo.swift:4:9: error: …`, as compilers write it.
    package var description: String { (place.map { "\($0): " } ?? "") + "\(severity): \(message)" }
}

/// The problems that were found so far, each once.
final class Problems {
    private var found: Set<GeneratorProblem> = []

    func error(_ place: Place?, _ message: String) {
        found.insert(GeneratorProblem(severity: .error, place: place, message: message))
    }

    func warn(_ place: Place?, _ message: String) {
        found.insert(GeneratorProblem(severity: .warning, place: place, message: message))
    }

    var hasErrors: Bool { found.contains { $0.severity == .error } }

    /// In the order of places; what has none comes first.
    var all: [GeneratorProblem] {
        found.sorted { one, other in
            if one.place != other.place {
                guard let first = one.place else { return true }
                guard let second = other.place else { return false }
                return first < second
            }
            return one.message < other.message
        }
    }
}

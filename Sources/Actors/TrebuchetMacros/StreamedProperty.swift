import SwiftDiagnostics
import SwiftReading
import SwiftSyntax
import SwiftSyntaxBuilder

/// A property marked `@StreamedState` or `@StreamedEvents`, read from its declaration.
struct StreamedProperty {
    /// The kind of stream: the versions of a state, or events.
    enum Kind: CaseIterable {
        case state, events

        var attributeName: String { self == .state ? "StreamedState" : "StreamedEvents" }
    }

    let kind: Kind
    /// The name as written, with backticks if it has them.
    let name: TokenSyntax
    let type: TypeSyntax
    /// The level written in the declaration, or nil without one.
    let access: AccessLevel?
    let arguments: StreamedStateArguments
    /// The `@available` attribute that deprecates the property; nil without one.
    let deprecation: AttributeSyntax?

    /// The name without backticks.
    var plainName: String { name.plainText }
    /// The name of the declaration added beside the property.
    var cellName: String { kind == .state ? "_\(plainName)_cell" : "$\(plainName)" }
    /// The initializer arguments of that declaration.
    var initializerArguments: String { arguments.initializerArguments(kind) }
    var observationName: String { WireName.observation(of: plainName) }

    /// Returns the kind of a marked property; nil without a mark.
    static func kind(of variable: VariableDeclSyntax) -> Kind? {
        Kind.allCases.first { variable.attributes.attribute(named: $0.attributeName) != nil }
    }

    /// Reads a property. Throws a `DiagnosticsError` with the reason if it cannot be streamed.
    init(_ variable: VariableDeclSyntax, _ kind: Kind) throws(DiagnosticsError) {
        self.kind = kind
        let problems = Self.problems(of: variable, kind)
        guard problems.isEmpty, let binding = variable.bindings.first else {
            throw DiagnosticsError(diagnostics: problems)
        }
        guard let pattern = binding.pattern.as(IdentifierPatternSyntax.self) else {
            throw DiagnosticsError(diagnostics: [
                MacroDiagnostic.error(
                    "pattern", at: binding.pattern, "'@\(kind.attributeName)' requires a property with one name")
            ])
        }
        name = pattern.identifier
        type = try Self.type(of: binding, named: pattern, kind)
        access = AccessLevel(variable.modifiers)
        deprecation = variable.attributes.deprecation
        arguments = try StreamedStateArguments(variable.attributes.attribute(named: kind.attributeName))
    }

    private static func type(
        of binding: PatternBindingSyntax, named pattern: IdentifierPatternSyntax, _ kind: Kind
    ) throws(DiagnosticsError) -> TypeSyntax {
        if let written = binding.typeAnnotation?.type {
            if let problem = UnstreamableType.problem(of: written) { throw DiagnosticsError(diagnostics: [problem]) }
            return written.trimmed
        }
        guard let value = binding.initializer?.value else {
            throw DiagnosticsError(diagnostics: [missingType(of: binding, named: pattern, guess: nil, kind)])
        }
        switch InitialValueType(of: value) {
        case .known(let type): return type
        case .guess(let type):
            throw DiagnosticsError(diagnostics: [missingType(of: binding, named: pattern, guess: type, kind)])
        case .unknown: throw DiagnosticsError(diagnostics: [missingType(of: binding, named: pattern, guess: nil, kind)])
        }
    }
}

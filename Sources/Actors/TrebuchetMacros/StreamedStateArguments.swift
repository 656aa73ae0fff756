import SwiftDiagnostics
import SwiftReading
import SwiftSyntax

/// The arguments of `@StreamedState(…)` or `@StreamedEvents(…)`.
struct StreamedStateArguments {
    /// The delivery, such as `.every(buffer: 256)`, as written.
    let delivery: ExprSyntax?
    /// For events: the number of buffered events for a slow subscriber.
    let buffer: ExprSyntax?
    /// For persisted events: the number of events in the store.
    let keeping: ExprSyntax?
    /// The expression that requests persistence of the state or events; nil without it.
    let persisted: ExprSyntax?

    /// For a persisted state: its schema version; nil for the first.
    let version: StateVersionArguments?

    var isPersisted: Bool { persisted != nil }

    /// Reads the arguments. The compiler reports unknown labels.
    init(_ attribute: AttributeSyntax?) throws(DiagnosticsError) {
        var found: [String: ExprSyntax] = [:]
        if case .argumentList(let arguments) = attribute?.arguments {
            for argument in arguments { found[argument.label?.text ?? ""] = argument.expression }
        }
        delivery = found["delivery"]
        buffer = found["buffer"]
        keeping = found["keeping"]
        let name = attribute?.plainName ?? "StreamedState"
        persisted = try found["persisted"].flatMap { expression throws(DiagnosticsError) in
            try Self.isTrue(expression, of: name) ? expression : nil
        }
        if let keeping, persisted == nil {
            throw DiagnosticsError(diagnostics: [
                MacroDiagnostic.error(
                    "keeping.persisted", at: keeping,
                    "'keeping' limits the events in the store and requires persisted events: write 'persisted: true' before it"
                )
            ])
        }
        version = try StateVersionArguments(found, isPersisted: persisted != nil)
    }

    private static func isTrue(_ expression: ExprSyntax, of name: String) throws(DiagnosticsError) -> Bool {
        guard let literal = expression.as(BooleanLiteralExprSyntax.self) else {
            throw DiagnosticsError(diagnostics: [
                MacroDiagnostic.error(
                    "persisted", at: expression,
                    "'@\(name)' requires 'persisted' as the literal 'true' or 'false', because it is read when the code is "
                        + "compiled")
            ])
        }
        return literal.literal.tokenKind == .keyword(.true)
    }

    /// Returns the initializer arguments of a state's declarations, such as `delivery: .every(buffer: 256)`, or of
    /// those of events, such as `buffer: 8, persisted: true`; empty without arguments.
    func initializerArguments(_ kind: StreamedProperty.Kind) -> String {
        let parsed: [(String, ExprSyntax?)] =
            kind == .state
            ? [("delivery", delivery)] : [("buffer", buffer), ("persisted", persisted), ("keeping", keeping)]
        return parsed.compactMap { name, value in value.map { "\(name): \($0.trimmed)" } }.joined(separator: ", ")
    }
}

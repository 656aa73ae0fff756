import SwiftDiagnostics
import SwiftReading
import SwiftSyntax

/// What stands in the parentheses of `@StreamedState(…)` or `@StreamedEvents(…)`.
struct StreamedStateArguments {
    /// `.every(buffer: 256)`, as it is written.
    let delivery: ExprSyntax?
    /// Of events: how many are kept for who is behind.
    let buffer: ExprSyntax?
    /// Of persisted events: how many the store keeps.
    let keeping: ExprSyntax?
    /// Where the state, or the events, are said to be persisted; nil when they are not.
    let persisted: ExprSyntax?

    /// Of a persisted state: the form in which it is stored; nil for the first.
    let version: StateVersionArguments?

    var isPersisted: Bool { persisted != nil }

    /// Labels that are not known here are for the compiler to judge.
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
                Problem.error(
                    "keeping.persisted", at: keeping,
                    "'keeping' is how many events the store keeps, and these are not: write 'persisted: true' before it"
                )
            ])
        }
        version = try StateVersionArguments(found, isPersisted: persisted != nil)
    }

    private static func isTrue(_ expression: ExprSyntax, of name: String) throws(DiagnosticsError) -> Bool {
        guard let literal = expression.as(BooleanLiteralExprSyntax.self) else {
            throw DiagnosticsError(diagnostics: [
                Problem.error(
                    "persisted", at: expression,
                    "'@\(name)' must be told 'persisted' as 'true' or 'false', since it is read when the code is "
                        + "compiled")
            ])
        }
        return literal.literal.tokenKind == .keyword(.true)
    }

    /// The arguments for an initializer of a state's parts, as `delivery: .every(buffer: 256)`, or of those of events, as
    /// `buffer: 8, persisted: true`; nothing when none is given.
    func initializerArguments(_ kind: StreamedProperty.Kind) -> String {
        let given: [(String, ExprSyntax?)] =
            kind == .state
            ? [("delivery", delivery)] : [("buffer", buffer), ("persisted", persisted), ("keeping", keeping)]
        return given.compactMap { name, value in value.map { "\(name): \($0.trimmed)" } }.joined(separator: ", ")
    }
}

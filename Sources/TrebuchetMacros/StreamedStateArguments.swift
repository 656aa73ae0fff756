import SwiftDiagnostics
import SwiftSyntax

/// What stands in the parentheses of `@StreamedState(…)` or `@StreamedEvents(…)`.
struct StreamedStateArguments {
    /// `.every(buffer: 256)`, as it is written.
    let delivery: ExprSyntax?
    /// Of events: how many are kept.
    let buffer: ExprSyntax?
    /// Where the state is said to be persisted; nil when it is not.
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
        persisted = try found["persisted"].flatMap { expression throws(DiagnosticsError) in
            try Self.isTrue(expression) ? expression : nil
        }
        version = try StateVersionArguments(found, isPersisted: persisted != nil)
    }

    private static func isTrue(_ expression: ExprSyntax) throws(DiagnosticsError) -> Bool {
        guard let literal = expression.as(BooleanLiteralExprSyntax.self) else {
            throw DiagnosticsError(diagnostics: [
                Problem.error(
                    "persisted", at: expression,
                    "'@StreamedState' must be told 'persisted' as 'true' or 'false', since it is read when the code is "
                        + "compiled")
            ])
        }
        return literal.literal.tokenKind == .keyword(.true)
    }

    /// The argument for an initializer, as `delivery: .every(buffer: 256)`; nothing when it is not given.
    var initializerArgument: String {
        if let delivery { return "delivery: \(delivery.trimmed)" }
        if let buffer { return "buffer: \(buffer.trimmed)" }
        return ""
    }
}

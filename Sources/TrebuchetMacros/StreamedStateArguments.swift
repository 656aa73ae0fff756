import SwiftDiagnostics
import SwiftSyntax

/// What stands in the parentheses of `@StreamedState(…)`.
struct StreamedStateArguments {
    /// Where the state is said to be persisted; nil when it is not.
    let persisted: ExprSyntax?

    var isPersisted: Bool { persisted != nil }

    /// Labels that are not known here are for the compiler to judge.
    init(_ attribute: AttributeSyntax?) throws(DiagnosticsError) {
        var persisted: ExprSyntax?
        if case .argumentList(let arguments) = attribute?.arguments {
            for argument in arguments where argument.label?.text == "persisted" {
                guard let literal = argument.expression.as(BooleanLiteralExprSyntax.self) else {
                    throw DiagnosticsError(diagnostics: [
                        Problem.error(
                            "persisted", at: argument.expression,
                            "'@StreamedState' must be told 'persisted' as 'true' or 'false', since it is read when the "
                                + "code is compiled")
                    ])
                }
                if literal.literal.tokenKind == .keyword(.true) { persisted = argument.expression }
            }
        }
        self.persisted = persisted
    }
}

import SwiftSyntax

/// What stands in the parentheses of `@StreamedState(…)` or `@StreamedEvents(…)`.
struct StreamedStateArguments {
    /// `.every(buffer: 256)`, as it is written.
    let delivery: ExprSyntax?
    /// Of events: how many are kept.
    let buffer: ExprSyntax?

    /// Labels that are not known here are for the compiler to judge.
    init(_ attribute: AttributeSyntax?) {
        var found: [String: ExprSyntax] = [:]
        if case .argumentList(let arguments) = attribute?.arguments {
            for argument in arguments { found[argument.label?.text ?? ""] = argument.expression.trimmed }
        }
        delivery = found["delivery"]
        buffer = found["buffer"]
    }

    /// The argument for an initializer, as `delivery: .every(buffer: 256)`; nothing when it is not given.
    var initializerArgument: String {
        if let delivery { return "delivery: \(delivery)" }
        if let buffer { return "buffer: \(buffer)" }
        return ""
    }
}

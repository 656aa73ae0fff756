package import SwiftSyntax

extension AttributeSyntax {
    /// The message of `@available(*, deprecated, message: "…")`, with the new name of `renamed:` after it. Empty without either of
    /// the two; nil for any other attribute.
    package var deprecation: String? {
        guard plainName == "available", case .availability(let arguments) = self.arguments else { return nil }
        var (isEverywhere, isDeprecated) = (false, false)
        var texts: [String: String] = [:]
        for argument in arguments {
            switch argument.argument {
            case .token(let token):
                if token.text == "*" { isEverywhere = true }
                if token.text == "deprecated" { isDeprecated = true }
            case .availabilityLabeledArgument(let labeled):
                if case .string(let literal) = labeled.value { texts[labeled.label.text] = literal.plainText }
            default: break
            }
        }
        guard isEverywhere, isDeprecated else { return nil }
        return [texts["message"], texts["renamed"].map { "renamed to '\($0)'" }].compactMap(\.self)
            .joined(separator: "; ")
    }
}

extension SimpleStringLiteralExprSyntax {
    /// The text of the literal. Escaped quotes and backslashes are resolved, since messages have no other escapes.
    fileprivate var plainText: String {
        segments.map(\.content.text).joined().replacing("\\\"", with: "\"").replacing("\\\\", with: "\\")
    }
}

extension AttributeListSyntax {
    /// The attribute that deprecates a declaration on all platforms; nil without one.
    package var deprecation: AttributeSyntax? {
        for case .attribute(let attribute) in self where attribute.deprecation != nil { return attribute }
        return nil
    }
}

package import SwiftSyntax

extension TokenSyntax {
    /// The text of an identifier without the backticks of an escaped keyword.
    package var plainText: String {
        let text = text
        return text.hasPrefix("`") && text.hasSuffix("`") && text.count > 2 ? String(text.dropFirst().dropLast()) : text
    }
}

extension AttributeSyntax {
    /// The last component of the attribute's name: `StreamedState` for `@Trebuchet.StreamedState`.
    package var plainName: String {
        if let member = attributeName.as(MemberTypeSyntax.self) { return member.name.text }
        if let identifier = attributeName.as(IdentifierTypeSyntax.self) { return identifier.name.text }
        return attributeName.trimmedDescription
    }
}

extension AttributeListSyntax {
    package func attribute(named name: String) -> AttributeSyntax? {
        for case .attribute(let attribute) in self where attribute.plainName == name { return attribute }
        return nil
    }
}

extension DeclModifierListSyntax {
    package var isDistributed: Bool { contains { $0.name.tokenKind == .keyword(.distributed) } }
    package var isStatic: Bool { contains { [.keyword(.static), .keyword(.class)].contains($0.name.tokenKind) } }
}

/// The names of an actor's members on the wire.
package enum WireName {
    /// Returns the name of a method, such as `addTodo(title:)`.
    package static func method(_ function: FunctionDeclSyntax) -> String {
        let labels = function.signature.parameterClause.parameters.map { $0.firstName.plainText + ":" }
        return "\(function.name.plainText)(\(labels.joined()))"
    }

    /// Returns the name of a property. It is called like a method, `count()`: its thunk is mangled as one, so
    /// `RemoteCallTarget` contains no more.
    package static func property(_ name: TokenSyntax) -> String { "\(name.plainText)()" }

    /// Returns the name of an observation: `observeState` for `state`.
    package static func observation(of property: String) -> String {
        "observe" + property.prefix(1).uppercased() + property.dropFirst()
    }
}

import SwiftSyntax

extension TokenSyntax {
    /// The text of an identifier without the backticks that let it be a keyword.
    var plainText: String {
        let text = text
        return text.hasPrefix("`") && text.hasSuffix("`") && text.count > 2 ? String(text.dropFirst().dropLast()) : text
    }
}

extension AttributeSyntax {
    /// The last component of the attribute's name: `StreamedState` for `@Trebuchet.StreamedState`.
    var plainName: String {
        if let member = attributeName.as(MemberTypeSyntax.self) { return member.name.text }
        if let identifier = attributeName.as(IdentifierTypeSyntax.self) { return identifier.name.text }
        return attributeName.trimmedDescription
    }
}

extension AttributeListSyntax {
    func attribute(named name: String) -> AttributeSyntax? {
        for case .attribute(let attribute) in self where attribute.plainName == name { return attribute }
        return nil
    }
}

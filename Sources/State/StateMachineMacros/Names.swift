import SwiftSyntax
import SwiftSyntaxMacros

extension TokenSyntax {
    /// The text of an identifier without the backticks of an escaped keyword.
    var plainText: String {
        let text = text
        return text.hasPrefix("`") && text.hasSuffix("`") && text.count > 2 ? String(text.dropFirst().dropLast()) : text
    }
}

extension AttributeListSyntax {
    /// Returns the attribute whose last name component is `name`, with any module or type before it.
    func attribute(named name: String) -> AttributeSyntax? {
        for case .attribute(let attribute) in self {
            if let member = attribute.attributeName.as(MemberTypeSyntax.self), member.name.text == name {
                return attribute
            }
            if let plain = attribute.attributeName.as(IdentifierTypeSyntax.self), plain.name.text == name {
                return attribute
            }
        }
        return nil
    }
}

extension DeclModifierListSyntax {
    /// The modifier of a member that makes it as visible as the declaration with these modifiers: `public `, or empty.
    ///
    /// A private type needs no modifier: it limits the visibility of its members, and `private` would hide a witness.
    var memberAccess: String { ownAccess ?? "" }

    /// The explicit access level; nil without one.
    fileprivate var ownAccess: String? {
        for modifier in self where modifier.detail == nil {
            switch modifier.name.tokenKind {
            case .keyword(.public), .keyword(.open): return "public "
            case .keyword(.package): return "package "
            case .keyword(.internal), .keyword(.fileprivate), .keyword(.private): return ""
            default: continue
            }
        }
        return nil
    }

    var isStatic: Bool { contains { [.keyword(.static), .keyword(.class)].contains($0.name.tokenKind) } }
}

extension DeclGroupSyntax {
    /// The name of the type, as it is written.
    var nameToken: TokenSyntax? { (self as? any NamedDeclSyntax)?.name }

    /// Returns the modifier of a member that makes it as visible as the type. A type in a `public extension` is public
    /// without a modifier.
    func memberAccess(in context: some MacroExpansionContext) -> String {
        let enclosing = context.lexicalContext.first?.as(ExtensionDeclSyntax.self)
        return modifiers.ownAccess ?? enclosing?.modifiers.memberAccess ?? ""
    }

    /// Returns the members with this name: types, properties, functions that are not static.
    func members(named name: String) -> [DeclSyntax] {
        memberBlock.members.map(\.decl).filter { member in
            if let variable = member.as(VariableDeclSyntax.self) {
                return !variable.modifiers.isStatic
                    && variable.bindings.contains {
                        $0.pattern.as(IdentifierPatternSyntax.self)?.identifier.plainText == name
                    }
            }
            if let function = member.as(FunctionDeclSyntax.self) {
                return !function.modifiers.isStatic && function.name.plainText == name
            }
            return (member.asProtocol((any NamedDeclSyntax).self))?.name.plainText == name
        }
    }
}

extension String {
    /// The text, with backticks if it is a keyword.
    var asIdentifier: String { Self.reserved.contains(self) ? "`\(self)`" : self }

    private static let reserved: Set<String> = [
        "associatedtype", "class", "deinit", "enum", "extension", "fileprivate", "func", "import", "init", "inout",
        "internal", "let", "operator", "private", "protocol", "public", "rethrows", "static", "struct", "subscript",
        "typealias", "var", "break", "case", "catch", "continue", "default", "defer", "do", "else", "fallthrough",
        "for", "guard", "if", "in", "repeat", "return", "throw", "switch", "where", "while", "Any", "as", "await",
        "false", "is", "nil", "self", "Self", "super", "throws", "true", "try", "precedencegroup",
    ]
}

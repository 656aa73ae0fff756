internal import SwiftReading
internal import SwiftSyntax

/// A type, a protocol or a type alias that the sources declare, with its extensions.
final class DeclaredType {
    /// The kind of declaration, as named in diagnostics.
    enum Kind: String {
        case structure = "a struct"
        case enumeration = "an enum"
        case `class` = "a class"
        case actor = "an actor"
        case `protocol` = "a protocol"
        case alias = "a type alias"
    }

    let id: Int
    let kind: Kind
    let name: String
    let node: DeclSyntax
    let file: SourceFile
    let parent: DeclaredType?
    /// The generic parameters. Those of enclosing types come first.
    let genericParameters: [String]
    /// True if the type is visible only in its file.
    let isFilePrivate: Bool
    let attributes: [AttributeSyntax]
    let comments: Comments
    private(set) var inherited: [TypeSyntax]
    /// The members of the declaration itself.
    private(set) var members: [DeclSyntax] = []
    /// Extensions, each with its active members.
    private(set) var extensions: [(node: ExtensionDeclSyntax, file: SourceFile, members: [DeclSyntax])] = []
    /// The types declared in it or in its extensions.
    var nested: [String: DeclaredType] = [:]

    init?(_ node: DeclSyntax, in file: SourceFile, parent: DeclaredType?, id: Int, conditions: BuildConditions) {
        let group: (any DeclGroupSyntax)?
        let generics: GenericParameterClauseSyntax?
        switch node.as(DeclSyntaxEnum.self) {
        case .structDecl(let type):
            (kind, name, group, generics) = (.structure, type.name.plainText, type, type.genericParameterClause)
        case .enumDecl(let type):
            (kind, name, group, generics) = (.enumeration, type.name.plainText, type, type.genericParameterClause)
        case .classDecl(let type):
            (kind, name, group, generics) = (.class, type.name.plainText, type, type.genericParameterClause)
        case .actorDecl(let type):
            (kind, name, group, generics) = (.actor, type.name.plainText, type, type.genericParameterClause)
        case .protocolDecl(let type): (kind, name, group, generics) = (.protocol, type.name.plainText, type, nil)
        case .typeAliasDecl(let type):
            (kind, name, group, generics) = (.alias, type.name.plainText, nil, type.genericParameterClause)
        default: return nil
        }
        (self.id, self.node, self.file, self.parent) = (id, node, file, parent)
        genericParameters =
            (parent?.genericParameters ?? []) + (generics.map { $0.parameters.map(\.name.plainText) } ?? [])
        isFilePrivate =
            parent?.isFilePrivate == true
            || node.asProtocol((any WithModifiersSyntax).self)?.modifiers.isFilePrivate == true
        attributes = node.asProtocol((any WithAttributesSyntax).self).map { conditions.attributes($0.attributes) } ?? []
        comments = Comments(node)
        inherited = group?.inheritanceClause?.inheritedTypes.map(\.type) ?? []
        members = group.map { conditions.members($0.memberBlock.members) } ?? []
    }

    func insertExtension(_ node: ExtensionDeclSyntax, in file: SourceFile, members: [DeclSyntax]) {
        extensions.append((node, file, members))
        inherited += node.inheritanceClause?.inheritedTypes.map(\.type) ?? []
    }

    /// The qualified name, such as `TodoList.State`.
    var qualifiedName: String { (parent.map { $0.qualifiedName + "." } ?? "") + name }

    var location: SourcePosition {
        let token = node.asProtocol((any NamedDeclSyntax).self)?.name
        return token.map { file.location(of: $0) } ?? file.location(of: node)
    }

    /// The members of the declaration and of its extensions, each with its file.
    var allMembers: [(node: DeclSyntax, file: SourceFile)] {
        members.map { ($0, file) } + extensions.flatMap { part in part.members.map { ($0, part.file) } }
    }

    /// The inherited names, with compositions split: `Codable`, `Sendable`.
    var inheritedNames: [String] { inherited.flatMap(Self.names) }

    private static func names(_ type: TypeSyntax) -> [String] {
        switch type.as(TypeSyntaxEnum.self) {
        case .compositionType(let composition): composition.elements.flatMap { names($0.type) }
        case .attributedType(let attributed): names(attributed.baseType)
        case .memberType(let member): [member.name.plainText]
        case .identifierType(let identifier): [identifier.name.plainText]
        default: []
        }
    }

    func hasAttribute(_ name: String) -> Bool { attributes.contains { $0.plainName == name } }
}

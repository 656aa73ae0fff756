import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// The macro `@Trebuchet`: adds the actor system, the executor, the dispatch table and the streams to a distributed
/// actor.
struct TrebuchetMacro {
    static let attributeName = "Trebuchet"
}

extension TrebuchetMacro: MemberMacro {
    static func expansion(
        of node: AttributeSyntax, providingMembersOf declaration: some DeclGroupSyntax,
        conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        let actor = try TrebuchetActorDeclaration(declaration, attribute: node, in: context)
        for diagnostic in actor.diagnostics { context.diagnose(diagnostic) }
        return actor.members
    }
}

extension TrebuchetMacro: ExtensionMacro {
    static func expansion(
        of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
        providingExtensionsOf type: some TypeSyntaxProtocol, conformingTo protocols: [TypeSyntax],
        in context: some MacroExpansionContext
    ) throws -> [ExtensionDeclSyntax] {
        // Errors of the actor are reported once, by the member role.
        guard let actor = try? TrebuchetActorDeclaration(declaration, attribute: node, in: context) else { return [] }
        var conformances = ["TrebuchetActors.TrebuchetActor"]
        if !actor.streams.isEmpty { conformances.append("TrebuchetActors.StreamingActor") }
        return [try ExtensionDeclSyntax("extension \(type.trimmed): \(raw: conformances.joined(separator: ", ")) {}")]
    }
}

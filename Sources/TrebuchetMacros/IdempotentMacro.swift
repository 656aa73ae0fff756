import SwiftDiagnostics
import SwiftReading
import SwiftSyntax
import SwiftSyntaxMacros

/// `@Idempotent`: a mark for `@Trebuchet`, which writes it into the dispatch table. It adds nothing itself.
struct IdempotentMacro: PeerMacro {
    static let attributeName = "Idempotent"

    static func expansion(
        of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        guard let function = declaration.as(FunctionDeclSyntax.self), function.modifiers.isDistributed else {
            throw DiagnosticsError(diagnostics: [
                Problem.error(
                    "idempotent", at: node,
                    "'@Idempotent' can only be attached to a 'distributed func': nothing else is called over a network")
            ])
        }
        // The dispatch table has the methods that stand in the actor's own body.
        let actor = context.lexicalContext.first?.as(ActorDeclSyntax.self)
        guard actor?.attributes.attribute(named: TrebuchetMacro.attributeName) != nil else {
            throw DiagnosticsError(diagnostics: [
                Problem.error(
                    "idempotent.place", at: node,
                    "'@Idempotent' works only in the body of a distributed actor marked '@Trebuchet'")
            ])
        }
        return []
    }
}

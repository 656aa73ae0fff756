import SwiftDiagnostics
import SwiftReading
import SwiftSyntax
import SwiftSyntaxMacros

/// A marker that `@Trebuchet` writes into the dispatch table. It adds no code itself.
protocol MethodMarkerMacro: PeerMacro {
    static var attributeName: String { get }
    /// The identifier of its diagnostics.
    static var problem: String { get }
    /// The reason why it applies only to distributed methods.
    static var reason: String { get }
}

extension MethodMarkerMacro {
    static func expansion(
        of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        try checkPlace(of: node, declaration, in: context)
        return []
    }

    /// Throws the error of a marker at another place than a distributed method of an actor marked `@Trebuchet`.
    static func checkPlace(
        of node: AttributeSyntax, _ declaration: some DeclSyntaxProtocol, in context: some MacroExpansionContext
    ) throws {
        guard let function = declaration.as(FunctionDeclSyntax.self), function.modifiers.isDistributed else {
            throw DiagnosticsError(diagnostics: [
                MacroDiagnostic.error(
                    problem, at: node, "'@\(attributeName)' can only be attached to a 'distributed func': \(reason)")
            ])
        }
        // The dispatch table contains the methods of the actor's own body.
        let actor = context.lexicalContext.first?.as(ActorDeclSyntax.self)
        guard actor?.attributes.attribute(named: TrebuchetMacro.attributeName) != nil else {
            throw DiagnosticsError(diagnostics: [
                MacroDiagnostic.error(
                    "\(problem).place", at: node,
                    "'@\(attributeName)' works only in the body of a distributed actor marked '@Trebuchet'")
            ])
        }
    }
}

/// The marker `@Idempotent`: a client may send the call again.
struct IdempotentMacro: MethodMarkerMacro {
    static let attributeName = "Idempotent"
    static let problem = "idempotent"
    static let reason = "only distributed methods are called over a network"
}

/// The marker `@Redacted`: the arguments do not appear in diagnostic views.
struct RedactedMacro: MethodMarkerMacro {
    static let attributeName = "Redacted"
    static let problem = "redacted"
    static let reason = "the arguments of other methods are never shown"
}

import SwiftDiagnostics
import SwiftReading
import SwiftSyntax
import SwiftSyntaxMacros

/// A mark for `@Trebuchet`, which writes it into the dispatch table. It adds nothing itself.
protocol MethodMark: PeerMacro {
    static var attributeName: String { get }
    /// What its problems are called.
    static var problem: String { get }
    /// Why it is for what is called over a network alone.
    static var reason: String { get }
}

extension MethodMark {
    static func expansion(
        of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        guard let function = declaration.as(FunctionDeclSyntax.self), function.modifiers.isDistributed else {
            throw DiagnosticsError(diagnostics: [
                Problem.error(
                    problem, at: node, "'@\(attributeName)' can only be attached to a 'distributed func': \(reason)")
            ])
        }
        // The dispatch table has the methods that stand in the actor's own body.
        let actor = context.lexicalContext.first?.as(ActorDeclSyntax.self)
        guard actor?.attributes.attribute(named: TrebuchetMacro.attributeName) != nil else {
            throw DiagnosticsError(diagnostics: [
                Problem.error(
                    "\(problem).place", at: node,
                    "'@\(attributeName)' works only in the body of a distributed actor marked '@Trebuchet'")
            ])
        }
        return []
    }
}

/// `@Idempotent`: a client may send the call again.
struct IdempotentMacro: MethodMark {
    static let attributeName = "Idempotent"
    static let problem = "idempotent"
    static let reason = "nothing else is called over a network"
}

/// `@Redacted`: nobody who looks inside is shown the arguments.
struct RedactedMacro: MethodMark {
    static let attributeName = "Redacted"
    static let problem = "redacted"
    static let reason = "of nothing else arguments are shown"
}

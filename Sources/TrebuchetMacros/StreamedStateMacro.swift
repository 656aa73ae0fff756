import SwiftDiagnostics
import SwiftReading
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `@StreamedState`: gives a property an observer that tells the subscribers of each change.
struct StreamedStateMacro {}

extension StreamedStateMacro: AccessorMacro {
    static func expansion(
        of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [AccessorDeclSyntax] {
        guard let variable = declaration.as(VariableDeclSyntax.self) else { return [] }
        // What is wrong with the property is reported once, by the peer.
        guard let property = try? StreamedProperty.inActor(variable, .state, marked: node, in: context) else {
            return placeholders(for: variable)
        }
        // An observer that does not look at the old value: a change in place, as `state.todos.append(x)`, copies nothing.
        return ["didSet { \(raw: property.cellName).didChange() }"]
    }

    /// Accessors that do nothing, so that the compiler does not add a complaint about missing ones to ours.
    private static func placeholders(for variable: VariableDeclSyntax) -> [AccessorDeclSyntax] {
        guard variable.bindingSpecifier.tokenKind == .keyword(.var),
            variable.bindings.allSatisfy({ $0.accessorBlock == nil })
        else { return [] }
        return ["didSet {}"]
    }
}

extension StreamedStateMacro: PeerMacro {
    static func expansion(
        of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        guard let variable = declaration.as(VariableDeclSyntax.self) else {
            throw DiagnosticsError(diagnostics: [
                Problem.error("property", at: node, "'@StreamedState' can only be attached to a property")
            ])
        }
        let property = try StreamedProperty.inActor(variable, .state, marked: node, in: context)
        return [
            """
            private let \(raw: property.cellName): TrebuchetActors._StateCell<\(raw: property.type)> = \
            .init(\(raw: property.initializerArguments))
            """
        ]
    }
}

extension StreamedProperty {
    /// Reads a property of an actor that serves streams.
    static func inActor(
        _ variable: VariableDeclSyntax, _ kind: Kind, marked node: AttributeSyntax,
        in context: some MacroExpansionContext
    ) throws(DiagnosticsError) -> StreamedProperty {
        // Streams are served by what `@Trebuchet` generates.
        let actor = context.lexicalContext.first?.as(ActorDeclSyntax.self)
        guard actor?.attributes.attribute(named: TrebuchetMacro.attributeName) != nil else {
            throw DiagnosticsError(diagnostics: [
                Problem.error(
                    "place", at: node,
                    "'@\(kind.attributeName)' works only inside a distributed actor marked '@Trebuchet'",
                    fixIts: [removal(from: variable, kind)])
            ])
        }
        return try StreamedProperty(variable, kind)
    }
}

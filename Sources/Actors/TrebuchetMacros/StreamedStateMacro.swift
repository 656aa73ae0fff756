import SwiftDiagnostics
import SwiftReading
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// The macro `@StreamedState`: adds an observer to a property that publishes each change.
struct StreamedStateMacro {}

extension StreamedStateMacro: AccessorMacro {
    static func expansion(
        of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [AccessorDeclSyntax] {
        guard let variable = declaration.as(VariableDeclSyntax.self) else { return [] }
        // Errors of the property are reported once, by the peer role.
        guard let property = try? StreamedProperty.inActor(variable, .state, marked: node, in: context) else {
            return placeholders(for: variable)
        }
        // This observer does not read the old value, so that a change in place, such as `state.todos.append(x)`,
        // copies nothing.
        return ["didSet { \(raw: property.cellName).didChange() }"]
    }

    /// Returns accessors without effect, so that the compiler does not report missing ones in addition.
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
                MacroDiagnostic.error("property", at: node, "'@StreamedState' can only be attached to a property")
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
        // Streams are served by the code that `@Trebuchet` generates.
        let actor = context.lexicalContext.first?.as(ActorDeclSyntax.self)
        guard actor?.attributes.attribute(named: TrebuchetMacro.attributeName) != nil else {
            throw DiagnosticsError(diagnostics: [
                MacroDiagnostic.error(
                    "place", at: node,
                    "'@\(kind.attributeName)' works only inside a distributed actor marked '@Trebuchet'",
                    fixIts: [removal(from: variable, kind)])
            ])
        }
        return try StreamedProperty(variable, kind)
    }
}

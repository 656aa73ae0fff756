import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `@StreamedState`: moves the value of a property into a cell that tells the subscribers of each change.
struct StreamedStateMacro {}

extension StreamedStateMacro: AccessorMacro {
    static func expansion(
        of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [AccessorDeclSyntax] {
        // What is wrong with the property is reported once, by the peer.
        guard let variable = declaration.as(VariableDeclSyntax.self), let property = try? StreamedProperty(variable)
        else { return [] }
        let cell: TokenSyntax = .identifier(property.cellName)
        return [
            """
            @storageRestrictions(initializes: \(cell))
            init(initialValue) {
                \(cell) = .init(initialValue)
            }
            """,
            """
            get {
                \(cell).value
            }
            """,
            // In place: `state.todos.append(x)` must not copy the array.
            """
            _modify {
                defer {
                    \(cell).didChange()
                }
                yield &\(cell).value
            }
            """,
        ]
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
        if let problem = placeProblem(of: node, on: variable, in: context) {
            throw DiagnosticsError(diagnostics: [problem])
        }
        let property = try StreamedProperty(variable)
        // A `var`, since an initializer may replace the default value, and with it the cell.
        var cell = "private var \(property.cellName): Trebuchet.StateCell<\(property.type)>"
        // As in any property, an optional that gets no value begins as nil.
        if property.type.is(OptionalTypeSyntax.self), !property.hasInitialValue { cell += " = .init(nil)" }
        return ["\(raw: cell)"]
    }

    /// Streams are served by what `@Trebuchet` generates, so the property has to stand in such an actor.
    private static func placeProblem(
        of node: AttributeSyntax, on variable: VariableDeclSyntax, in context: some MacroExpansionContext
    ) -> Diagnostic? {
        let actor = context.lexicalContext.first?.as(ActorDeclSyntax.self)
        if actor?.attributes.attribute(named: TrebuchetMacro.attributeName) != nil { return nil }
        return Problem.error(
            "place", at: node, "'@StreamedState' works only inside a distributed actor marked '@Trebuchet'",
            fixIts: [FixIt("place.fix", "remove '@StreamedState'", variable.removing(node))])
    }
}

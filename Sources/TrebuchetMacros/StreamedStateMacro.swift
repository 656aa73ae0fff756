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
        guard let variable = declaration.as(VariableDeclSyntax.self) else { return [] }
        // What is wrong with the property is reported once, by the peer.
        guard let property = try? property(variable, marked: node, in: context) else {
            return placeholders(for: variable)
        }
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

    /// Accessors that do nothing, so that the compiler does not add a complaint about missing ones to ours.
    private static func placeholders(for variable: VariableDeclSyntax) -> [AccessorDeclSyntax] {
        guard variable.bindingSpecifier.tokenKind == .keyword(.var),
            variable.bindings.allSatisfy({ $0.accessorBlock == nil })
        else { return [] }
        return ["init(initialValue) {}", "get { fatalError() }", "set {}"]
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
        let property = try property(variable, marked: node, in: context)
        // A `var`, since an initializer may replace the default value, and with it the cell.
        var cell = "private var \(property.cellName): Trebuchet.StateCell<\(property.type)>"
        // As in any property, an optional that gets no value begins as nil.
        if property.type.is(OptionalTypeSyntax.self), !property.hasInitialValue { cell += " = .init(nil)" }
        return ["\(raw: cell)"]
    }

    private static func property(
        _ variable: VariableDeclSyntax, marked node: AttributeSyntax, in context: some MacroExpansionContext
    ) throws(DiagnosticsError) -> StreamedProperty {
        // Streams are served by what `@Trebuchet` generates.
        let actor = context.lexicalContext.first?.as(ActorDeclSyntax.self)
        guard actor?.attributes.attribute(named: TrebuchetMacro.attributeName) != nil else {
            throw DiagnosticsError(diagnostics: [
                Problem.error(
                    "place", at: node, "'@StreamedState' works only inside a distributed actor marked '@Trebuchet'",
                    fixIts: [StreamedProperty.removal(from: variable)])
            ])
        }
        return try StreamedProperty(variable)
    }
}

import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// The macro `@StreamedEvents`: `var moves: Move` represents a stream of moves, sent with `$moves.send(_:)`.
struct StreamedEventsMacro {}

extension StreamedEventsMacro: AccessorMacro {
    static func expansion(
        of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [AccessorDeclSyntax] {
        guard let variable = declaration.as(VariableDeclSyntax.self),
            variable.bindings.allSatisfy({ $0.accessorBlock == nil })
        else { return [] }
        // Errors of the property are reported once, by the peer role.
        let name = (try? StreamedProperty(variable, .events))?.cellName ?? "$…"
        return [
            """
            @available(*, unavailable, message: "events have no stored value: send them with '\(raw: name).send(_:)' and observe them")
            get {
                fatalError()
            }
            """
        ]
    }
}

extension StreamedEventsMacro: PeerMacro {
    static func expansion(
        of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        guard let variable = declaration.as(VariableDeclSyntax.self) else {
            throw DiagnosticsError(diagnostics: [
                MacroDiagnostic.error("property", at: node, "'@StreamedEvents' can only be attached to a property")
            ])
        }
        let property = try StreamedProperty.inActor(variable, .events, marked: node, in: context)
        // As visible as the property, within the module: other modules do not send events.
        let access =
            switch property.access {
            case .private: "private "
            case .fileprivate: "fileprivate "
            default: ""
            }
        return [
            """
            \(raw: access)let \(raw: property.cellName): TrebuchetActors.EventSender<\(raw: property.type)> = \
            .init(\(raw: property.initializerArguments))
            """
        ]
    }
}

import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `@StreamedEvents`: `var moves: Move` stands for a stream of moves, which are sent with `$moves.send(_:)`.
struct StreamedEventsMacro {}

extension StreamedEventsMacro: AccessorMacro {
    static func expansion(
        of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [AccessorDeclSyntax] {
        guard let variable = declaration.as(VariableDeclSyntax.self),
            variable.bindings.allSatisfy({ $0.accessorBlock == nil })
        else { return [] }
        // What is wrong with the property is reported once, by the peer.
        let name = (try? StreamedProperty(variable, .events))?.cellName ?? "$…"
        return [
            """
            @available(*, unavailable, message: "events are sent, with '\(raw: name).send(_:)', and observed")
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
                Problem.error("property", at: node, "'@StreamedEvents' can only be attached to a property")
            ])
        }
        let property = try StreamedProperty.inActor(variable, .events, marked: node, in: context)
        // As visible as the property, within the module: nobody else sends.
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

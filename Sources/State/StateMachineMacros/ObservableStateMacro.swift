import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// The macro `@ObservableState`: marks a state whose properties a store may expose separately.
struct ObservableStateMacro: ExtensionMacro {
    static func expansion(
        of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
        providingExtensionsOf type: some TypeSyntaxProtocol, conformingTo protocols: [TypeSyntax],
        in context: some MacroExpansionContext
    ) throws -> [ExtensionDeclSyntax] {
        guard declaration.is(StructDeclSyntax.self) || declaration.is(EnumDeclSyntax.self) else {
            throw DiagnosticsError(diagnostics: [
                MacroDiagnostic.error(
                    "value", at: declaration.introducer,
                    "'@ObservableState' can only be attached to a struct or an enum: a store observes changes of "
                        + "values only",
                    fixIts: [.removing(node)])
            ])
        }
        if protocols.isEmpty { return [] }
        return [try ExtensionDeclSyntax("extension \(type.trimmed): StateMachines.ObservableState {}")]
    }
}

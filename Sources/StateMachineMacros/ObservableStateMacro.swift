import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `@ObservableState`: says that a store may offer the properties of this state one by one.
struct ObservableStateMacro: ExtensionMacro {
    static func expansion(
        of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
        providingExtensionsOf type: some TypeSyntaxProtocol, conformingTo protocols: [TypeSyntax],
        in context: some MacroExpansionContext
    ) throws -> [ExtensionDeclSyntax] {
        guard declaration.is(StructDeclSyntax.self) || declaration.is(EnumDeclSyntax.self) else {
            throw DiagnosticsError(diagnostics: [
                Problem.error(
                    "value", at: declaration.introducer,
                    "'@ObservableState' can only be attached to a struct or an enum: a store sees the changes of "
                        + "values alone",
                    fixIts: [.removing(node)])
            ])
        }
        if protocols.isEmpty { return [] }
        return [try ExtensionDeclSyntax("extension \(type.trimmed): StateMachines.ObservableState {}")]
    }
}

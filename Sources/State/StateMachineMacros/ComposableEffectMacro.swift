import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// The macro `@ComposableEffect`: adds the cases `merge` and `concat`, and the decomposition of effects.
struct ComposableEffectMacro: MemberMacro, ExtensionMacro {
    static let attributeName = "ComposableEffect"
    static let addedCases = ["merge", "concat"]

    static func expansion(
        of node: AttributeSyntax, providingMembersOf declaration: some DeclGroupSyntax,
        conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        let problems = problems(of: declaration, marked: node)
        guard problems.isEmpty, let type = declaration.as(EnumDeclSyntax.self) else {
            throw DiagnosticsError(diagnostics: problems)
        }
        let access = type.memberAccess(in: context)
        return [
            "case merge([Self])",
            "case concat([Self])",
            """
            /// Returns an effect that runs these effects concurrently.
            \(raw: access)static func merge(_ effects: Self...) -> Self {
                .merge(effects)
            }
            """,
            """
            /// Returns an effect that runs these effects in order.
            \(raw: access)static func concat(_ effects: Self...) -> Self {
                .concat(effects)
            }
            """,
            """
            \(raw: access)func asComposableEffect() -> StateMachines.ComposableEffect<Self> {
                switch self {
                case .merge(let effects):
                    return .merge(effects.map { $0.asComposableEffect() })
                case .concat(let effects):
                    return .concat(effects.map { $0.asComposableEffect() })
                default:
                    return .just(self)
                }
            }
            """,
        ]
    }

    static func expansion(
        of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
        providingExtensionsOf type: some TypeSyntaxProtocol, conformingTo protocols: [TypeSyntax],
        in context: some MacroExpansionContext
    ) throws -> [ExtensionDeclSyntax] {
        guard !protocols.isEmpty, problems(of: declaration, marked: node).isEmpty else { return [] }
        return [try ExtensionDeclSyntax("extension \(type.trimmed): StateMachines.ComposableEffectConvertible {}")]
    }

    private static func problems(of declaration: some DeclGroupSyntax, marked node: AttributeSyntax) -> [Diagnostic] {
        guard let type = declaration.as(EnumDeclSyntax.self) else {
            return [
                MacroDiagnostic.error(
                    "enum", at: declaration.introducer, "'@ComposableEffect' can only be attached to an enum",
                    fixIts: [.removing(node)])
            ]
        }
        let cases = type.cases
        if cases.isEmpty {
            return [
                MacroDiagnostic.error(
                    "empty", at: type.name, "'@ComposableEffect' needs at least one case to compose",
                    fixIts: [.removing(node)])
            ]
        }
        return clashes(cases, with: "'@ComposableEffect'")
    }

    /// Returns errors for cases with a name that the macro adds.
    static func clashes(_ cases: [EnumCase], with macro: String) -> [Diagnostic] {
        cases.filter { addedCases.contains($0.name.plainText) }.map { element in
            let name = element.name.plainText
            return MacroDiagnostic.error(
                "clash", at: element.name,
                "\(macro) adds a case '\(name)' that runs several effects: rename this case",
                fixIts: [
                    .replacing(
                        "rename it to '\(name)Effects'", element.name,
                        with: TokenSyntax(stringLiteral: "\(name)Effects"))
                ])
        }
    }
}

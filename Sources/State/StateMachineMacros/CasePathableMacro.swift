import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// The macro `@CasePathable`: adds one `AnyCasePath` for each case of an enum.
struct CasePathableMacro: MemberMacro, ExtensionMacro {
    static func expansion(
        of node: AttributeSyntax, providingMembersOf declaration: some DeclGroupSyntax,
        conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        guard let type = declaration.as(EnumDeclSyntax.self) else {
            throw DiagnosticsError(diagnostics: [
                MacroDiagnostic.error(
                    "enum", at: declaration.introducer, "'@CasePathable' can only be attached to an enum",
                    fixIts: [.removing(node)])
            ])
        }
        let cases = type.cases
        let overloads = overloads(cases)
        if !overloads.isEmpty { throw DiagnosticsError(diagnostics: overloads) }
        let access = type.memberAccess(in: context)
        let root = type.name.trimmedDescription
        let properties = cases.map { $0.guarded(property(of: $0, root: root, access: access)) }
        return [
            """
            \(raw: access)struct AllCasePaths: Swift.Sendable {
            \(raw: properties.joined(separator: "\n"))
            }
            """,
            "\(raw: access)static var allCasePaths: AllCasePaths { AllCasePaths() }",
        ]
    }

    static func expansion(
        of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
        providingExtensionsOf type: some TypeSyntaxProtocol, conformingTo protocols: [TypeSyntax],
        in context: some MacroExpansionContext
    ) throws -> [ExtensionDeclSyntax] {
        guard !protocols.isEmpty, let enumeration = declaration.as(EnumDeclSyntax.self),
            overloads(enumeration.cases).isEmpty
        else { return [] }
        return [try ExtensionDeclSyntax("extension \(type.trimmed): StateMachines.CasePathable {}")]
    }

    static func overloads(_ cases: [EnumCase]) -> [Diagnostic] {
        EnumCase.overloads(cases, reportedFor: "'@CasePathable'")
    }

    private static func property(of element: EnumCase, root: String, access: String) -> String {
        let types = element.payload.map { TypeQualifier.qualify($0.type, owner: root) }
        let labels = element.payload.map { $0.label.map { "\($0): " } ?? "" }
        let name = element.name.text
        let value: String
        let embedding: String
        switch types.count {
        case 0: (value, embedding) = ("Swift.Void", "{ _ in .\(name) }")
        // The case itself instead of a closure: a closure over a payload of `Never` causes a compiler warning.
        case 1:
            let label = element.payload[0].label.map { "(\($0):)" } ?? ""
            (value, embedding) = (types[0], "\(root).\(name)\(label)")
        default:
            value = "(" + zip(labels, types).map { $0 + $1 }.joined(separator: ", ") + ")"
            let arguments = labels.enumerated().map { "\($1)$0.\($0)" }
            embedding = "{ .\(name)(\(arguments.joined(separator: ", "))) }"
        }
        let found =
            types.count == 1 ? "value0" : "(" + types.indices.map { "value\($0)" }.joined(separator: ", ") + ")"
        return """
            \(access)var \(name): StateMachines.AnyCasePath<\(root), \(value)> {
                StateMachines.AnyCasePath(
                    name: "\(element.name.plainText)",
                    embed: \(embedding),
                    extract: { root in
                        guard case \(element.pattern) = root else { return nil }
                        return \(found)
                    })
            }
            """
    }
}

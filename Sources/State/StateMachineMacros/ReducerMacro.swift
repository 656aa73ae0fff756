import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// The macro `@Reducer`: makes a type a reducer, its actions case-pathable, and its body a result of a builder.
struct ReducerMacro: MemberAttributeMacro, ExtensionMacro {
    static func expansion(
        of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
        providingAttributesFor member: some DeclSyntaxProtocol, in context: some MacroExpansionContext
    ) throws -> [AttributeSyntax] {
        builderAttribute(for: member, property: "body") + casePathAttribute(for: member, types: ["Action"])
    }

    static func expansion(
        of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
        providingExtensionsOf type: some TypeSyntaxProtocol, conformingTo protocols: [TypeSyntax],
        in context: some MacroExpansionContext
    ) throws -> [ExtensionDeclSyntax] {
        guard declaration.is(StructDeclSyntax.self) else {
            throw DiagnosticsError(diagnostics: [
                MacroDiagnostic.error(
                    "struct", at: declaration.introducer,
                    "'@Reducer' can only be attached to a struct: a reducer has no state",
                    fixIts: [.removing(node)])
            ])
        }
        let missing = missingTypes(of: declaration)
        if !missing.isEmpty { throw DiagnosticsError(diagnostics: missing) }
        if protocols.isEmpty { return [] }
        return [try ExtensionDeclSyntax("extension \(type.trimmed): StateMachines.Reducer {}")]
    }

    /// Returns errors for missing types that `body` uses. Without them the compiler would report in several places
    /// that the type does not conform to `Reducer`, without the cause.
    private static func missingTypes(of declaration: some DeclGroupSyntax) -> [Diagnostic] {
        guard let name = declaration.nameToken,
            let body = declaration.members(named: "body").first?.as(VariableDeclSyntax.self),
            let type = body.bindings.first?.typeAnnotation?.type
        else { return [] }
        // A qualified type, such as 'Feature.State', may be declared in an extension, which a macro cannot read.
        let words = Set(
            type.tokens(viewMode: .sourceAccurate)
                .filter { $0.previousToken(viewMode: .sourceAccurate)?.tokenKind != .period }.map(\.text))
        return [("State", "struct State {\n    }"), ("Action", "enum Action {\n    }")].compactMap { kind, text in
            guard words.contains("Self") || words.contains(kind), declaration.members(named: kind).isEmpty,
                declaration.members(named: "reduce").isEmpty
            else { return nil }
            return MacroDiagnostic.error(
                "missing", at: name,
                "'@Reducer' requires a type '\(kind)' inside '\(name.plainText)', because 'body' is a reducer of it; "
                    + "if it is declared in an extension, write '\(name.plainText).\(kind)' in the type of 'body'",
                fixIts: [.inserting("insert '\(text.prefix { $0 != "{" })'", text, into: declaration)])
        }
    }

    /// Returns the builder attribute for a property of reducers that lacks it.
    static func builderAttribute(for member: some DeclSyntaxProtocol, property: String) -> [AttributeSyntax] {
        guard let variable = member.as(VariableDeclSyntax.self), !variable.modifiers.isStatic,
            variable.bindings.count == 1,
            variable.bindings.first?.pattern.as(IdentifierPatternSyntax.self)?.identifier.plainText == property,
            variable.bindings.first?.accessorBlock != nil,
            variable.attributes.attribute(named: "ReducerBuilder") == nil
        else { return [] }
        return ["@StateMachines.ReducerBuilder<Self.State, Self.Action>"]
    }

    /// Returns `@CasePathable` for an enum with one of these names that lacks it.
    static func casePathAttribute(for member: some DeclSyntaxProtocol, types: [String]) -> [AttributeSyntax] {
        guard let type = member.as(EnumDeclSyntax.self), types.contains(type.name.plainText),
            type.attributes.attribute(named: "CasePathable") == nil,
            CasePathableMacro.overloads(type.cases).isEmpty
        else { return [] }
        return ["@CasePathable"]
    }
}

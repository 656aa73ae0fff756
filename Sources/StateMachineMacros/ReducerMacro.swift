import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `@Reducer`: makes a type a reducer, its actions case-pathable and its body one that a builder builds.
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
                Problem.error(
                    "struct", at: declaration.introducer,
                    "'@Reducer' can only be attached to a struct: a reducer keeps no state of its own",
                    fixIts: [.removing(node)])
            ])
        }
        let missing = missingTypes(of: declaration)
        if !missing.isEmpty { throw DiagnosticsError(diagnostics: missing) }
        if protocols.isEmpty { return [] }
        return [try ExtensionDeclSyntax("extension \(type.trimmed): StateMachines.Reducer {}")]
    }

    /// The types that `body` speaks of and that are not there. Without a word on them the compiler would say in several places that
    /// the type does not conform to `Reducer`, and not why.
    private static func missingTypes(of declaration: some DeclGroupSyntax) -> [Diagnostic] {
        guard let name = declaration.nameToken,
            let body = declaration.members(named: "body").first?.as(VariableDeclSyntax.self),
            let type = body.bindings.first?.typeAnnotation?.type
        else { return [] }
        // What is qualified, as 'Feature.State', may stand in an extension, which a macro does not see.
        let words = Set(
            type.tokens(viewMode: .sourceAccurate)
                .filter { $0.previousToken(viewMode: .sourceAccurate)?.tokenKind != .period }.map(\.text))
        return [("State", "struct State {\n    }"), ("Action", "enum Action {\n    }")].compactMap { kind, text in
            guard words.contains("Self") || words.contains(kind), declaration.members(named: kind).isEmpty,
                declaration.members(named: "reduce").isEmpty
            else { return nil }
            return Problem.error(
                "missing", at: name,
                "'@Reducer' needs a type '\(kind)' inside of '\(name.plainText)', since 'body' is a reducer of it; "
                    + "where it stands in an extension, write '\(name.plainText).\(kind)' in the type of 'body'",
                fixIts: [.inserting("insert '\(text.prefix { $0 != "{" })'", text, into: declaration)])
        }
    }

    /// The builder for a property of reducers that does not name it.
    static func builderAttribute(for member: some DeclSyntaxProtocol, property: String) -> [AttributeSyntax] {
        guard let variable = member.as(VariableDeclSyntax.self), !variable.modifiers.isStatic,
            variable.bindings.count == 1,
            variable.bindings.first?.pattern.as(IdentifierPatternSyntax.self)?.identifier.plainText == property,
            variable.bindings.first?.accessorBlock != nil,
            variable.attributes.attribute(named: "ReducerBuilder") == nil
        else { return [] }
        return ["@StateMachines.ReducerBuilder<Self.State, Self.Action>"]
    }

    /// `@CasePathable` for an enum with one of these names that has it not.
    static func casePathAttribute(for member: some DeclSyntaxProtocol, types: [String]) -> [AttributeSyntax] {
        guard let type = member.as(EnumDeclSyntax.self), types.contains(type.name.plainText),
            type.attributes.attribute(named: "CasePathable") == nil,
            CasePathableMacro.overloads(type.cases).isEmpty
        else { return [] }
        return ["@CasePathable"]
    }
}

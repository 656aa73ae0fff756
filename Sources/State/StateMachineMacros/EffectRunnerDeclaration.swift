import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// A state machine marked `@ComposableEffectRunner`, read from its declaration.
struct EffectRunnerDeclaration {
    let name: TokenSyntax
    let access: String
    let isActor: Bool
    /// True if a protocol cannot be nested in it.
    let isGeneric: Bool
    let isBodyComposable: Bool
    /// The effects; nil when `IOEffect` is `Never`.
    let effects: EnumDeclSyntax?
    let handlers: [EffectHandler]
    /// The existing members, which are not generated.
    let ownMembers: Set<String>
    /// The problems that do not prevent the expansion.
    private(set) var diagnostics: [Diagnostic] = []

    init(
        _ declaration: some DeclGroupSyntax, attribute: AttributeSyntax, in context: some MacroExpansionContext
    ) throws(DiagnosticsError) {
        guard declaration.is(StructDeclSyntax.self) || declaration.is(ActorDeclSyntax.self),
            let name = declaration.nameToken
        else {
            throw DiagnosticsError(diagnostics: [
                MacroDiagnostic.error(
                    "type", at: declaration.introducer,
                    "\(Self.text(attribute)) can only be attached to a struct or an actor",
                    fixIts: [.removing(attribute)])
            ])
        }
        self.name = name
        isActor = declaration.is(ActorDeclSyntax.self)
        access = declaration.memberAccess(in: context)
        isGeneric =
            declaration.asProtocol((any WithGenericParametersSyntax).self)?.genericParameterClause != nil
            || context.lexicalContext.contains {
                $0.asProtocol((any WithGenericParametersSyntax).self)?.genericParameterClause != nil
            }
        isBodyComposable =
            try Self.isBodyComposable(attribute)
            || declaration.attributes.attribute(named: ComposableStateMachineMacro.attributeName) != nil
        effects = try Self.effects(of: declaration, name: name, attribute)
        handlers = EffectHandler.handlers(for: effects?.cases ?? [], nested: effects?.nestedTypeNames ?? [])
        ownMembers = Set(
            ["body", "runIOEffect", "applyIOEffect", "EffectRunner"].filter { !declaration.members(named: $0).isEmpty })
        diagnostics += EffectHandler.collisions(handlers)
        if !isBodyComposable, !ownMembers.contains("body"), let body = declaration.members(named: "nestedBody").first {
            diagnostics.append(Self.unusedBody(body, attribute))
        }
    }

    /// Returns the attribute as it is written: '@ComposableEffectRunner' or '@EffectComposition'.
    private static func text(_ attribute: AttributeSyntax) -> String {
        "'@\(attribute.attributeName.trimmedDescription)'"
    }

    private static func isBodyComposable(_ attribute: AttributeSyntax) throws(DiagnosticsError) -> Bool {
        guard case .argumentList(let arguments) = attribute.arguments else { return false }
        for argument in arguments where argument.label?.text != "isBodyComposable" {
            throw DiagnosticsError(diagnostics: [
                MacroDiagnostic.error(
                    "argument", at: argument,
                    "\(text(attribute)) takes one argument, 'isBodyComposable:', and not "
                        + "'\(argument.trimmedDescription)'")
            ])
        }
        guard let expression = arguments.first?.expression else { return false }
        if let literal = expression.as(BooleanLiteralExprSyntax.self) {
            return literal.literal.tokenKind == .keyword(.true)
        }
        throw DiagnosticsError(diagnostics: [
            MacroDiagnostic.error(
                "literal", at: expression,
                "'isBodyComposable' must be the literal 'true' or 'false', because it is read when the code is compiled",
                fixIts: [true, false].map {
                    .replacing("use '\($0)'", expression, with: ExprSyntax(BooleanLiteralExprSyntax($0)))
                })
        ])
    }

    private static func effects(
        of declaration: some DeclGroupSyntax, name: TokenSyntax, _ attribute: AttributeSyntax
    ) throws(DiagnosticsError) -> EnumDeclSyntax? {
        let own = text(attribute)
        let found = declaration.members(named: "IOEffect").first
        if let alias = found?.as(TypeAliasDeclSyntax.self) {
            let type = alias.initializer.value
            if ["Never", "Swift.Never"].contains(type.trimmedDescription) { return nil }
            throw DiagnosticsError(diagnostics: [
                MacroDiagnostic.error(
                    "alias", at: type,
                    "\(own) cannot see the cases of '\(type.trimmedDescription)': declare "
                        + "'IOEffect' as an enum inside '\(name.plainText)', or as 'Never'")
            ])
        }
        guard let effects = found?.as(EnumDeclSyntax.self) else {
            throw DiagnosticsError(diagnostics: [
                MacroDiagnostic.error(
                    "effects",
                    at: name,
                    "\(own) requires an enum 'IOEffect' inside '\(name.plainText)'",
                    fixIts: [
                        .inserting(
                            "insert 'enum IOEffect'", "enum IOEffect {\n        case <#effect#>\n    }",
                            into: declaration)
                    ])
            ])
        }
        if effects.cases.isEmpty {
            throw DiagnosticsError(diagnostics: [
                MacroDiagnostic.error(
                    "empty", at: effects.name,
                    "'IOEffect' has no cases: use 'Never' for a machine without effects",
                    fixIts: [
                        .replacing(
                            "replace it with 'typealias IOEffect = Never'", effects,
                            with: DeclSyntax("\(raw: effects.modifiers.memberAccess)typealias IOEffect = Never"))
                    ])
            ])
        }
        // If the enum is marked `@ComposableEffect`, that macro reports the clashes.
        let clashes = ComposableEffectMacro.clashes(effects.cases, with: own)
        if effects.attributes.attribute(named: ComposableEffectMacro.attributeName) == nil, !clashes.isEmpty {
            throw DiagnosticsError(diagnostics: clashes)
        }
        let overloads = EnumCase.overloads(effects.cases, reportedFor: own)
        if !overloads.isEmpty { throw DiagnosticsError(diagnostics: overloads) }
        return effects
    }

    private static func unusedBody(_ body: DeclSyntax, _ attribute: AttributeSyntax) -> Diagnostic {
        let full: AttributeSyntax = "@\(attribute.attributeName.trimmed)(isBodyComposable: true)"
        return MacroDiagnostic.warning(
            "nestedBody", at: body, "'nestedBody' is used only with 'isBodyComposable: true'",
            fixIts: [.replacing("insert 'isBodyComposable: true'", attribute, with: full)])
    }
}

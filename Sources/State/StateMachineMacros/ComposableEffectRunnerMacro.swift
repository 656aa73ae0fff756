import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// The macro `@ComposableEffectRunner`: adds one method requirement for each effect of a machine, and the code that
/// calls the methods.
struct ComposableEffectRunnerMacro: MemberMacro, MemberAttributeMacro {
    static func expansion(
        of node: AttributeSyntax, providingMembersOf declaration: some DeclGroupSyntax,
        conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        let machine = try EffectRunnerDeclaration(declaration, attribute: node, in: context)
        for diagnostic in machine.diagnostics { context.diagnose(diagnostic) }
        return machine.members
    }

    static func expansion(
        of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
        providingAttributesFor member: some DeclSyntaxProtocol, in context: some MacroExpansionContext
    ) throws -> [AttributeSyntax] {
        // Errors are reported once, by the member role.
        guard (try? EffectRunnerDeclaration(declaration, attribute: node, in: context)) != nil else { return [] }
        if let effects = member.as(EnumDeclSyntax.self), effects.name.plainText == "IOEffect" {
            let isMarked = effects.attributes.attribute(named: ComposableEffectMacro.attributeName) != nil
            return isMarked ? [] : ["@ComposableEffect"]
        }
        return ReducerMacro.casePathAttribute(for: member, types: ["Action", "IOResult"])
            + ReducerMacro.builderAttribute(for: member, property: "nestedBody")
    }
}

extension EffectRunnerDeclaration {
    var members: [DeclSyntax] {
        var members: [DeclSyntax] = []
        if effects != nil {
            if !isGeneric, !ownMembers.contains("EffectRunner") { members.append(runnerProtocol) }
            if !ownMembers.contains("applyIOEffect") { members.append(application) }
            if !ownMembers.contains("runIOEffect") { members.append(dispatcher) }
        }
        if isBodyComposable, !ownMembers.contains("body") { members.append(body) }
        return members
    }

    /// The members that a reducer needs are synchronous, so they cannot be isolated to an actor.
    private var prefix: String { access + (isActor ? "nonisolated " : "") }

    private var runnerProtocol: DeclSyntax {
        let requirements = handlers.map { handler in
            handler.element.guarded(
                "\(handler.signature) \(isActor ? "async " : "")-> \(name.text).IOResultStream")
        }
        return """
            /// The methods that run the effects of `\(raw: name.plainText)`.
            \(raw: access)protocol EffectRunner {
            \(raw: requirements.joined(separator: "\n"))
            }
            """
    }

    private var application: DeclSyntax {
        """
        \(raw: prefix)func applyIOEffect(_ ioEffect: IOEffect) -> StateMachines.Effect<Action> {
            ioEffect.asComposableEffect().extract(self.results(of:))
        }
        """
    }

    private var dispatcher: DeclSyntax {
        let cases = handlers.map { handler in
            let call =
                isActor ? ".deferred { await self.\(handler.call) }" : "self.\(handler.call)"
            return handler.element.guarded(
                "case \(handler.element.pattern):\n    return \(call)")
        }
        return """
            \(raw: prefix)func runIOEffect(_ ioEffect: IOEffect) -> IOResultStream {
                switch ioEffect {
                case .merge, .concat:
                    return ioEffect.asComposableEffect().stream { self.runIOEffect($0) }
                \(raw: cases.joined(separator: "\n"))
                }
            }
            """
    }

    private var body: DeclSyntax {
        """
        @StateMachines.ReducerBuilder<Self.State, Self.Action>
        \(raw: prefix)var body: some StateMachines.Reducer<State, Action> {
            self.nestedBody
            StateMachines.StateMachineReducer(machine: self)
        }
        """
    }
}

import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// The macro `@StateMachine`: makes the events of a machine its only actions.
struct StateMachineMacro: MemberMacro, MemberAttributeMacro {
    static func expansion(
        of node: AttributeSyntax, providingMembersOf declaration: some DeclGroupSyntax,
        conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        guard declaration.is(StructDeclSyntax.self) || declaration.is(ActorDeclSyntax.self) else {
            context.diagnose(
                MacroDiagnostic.error(
                    "type", at: declaration.introducer, "'@StateMachine' can only be attached to a struct or an actor",
                    fixIts: [.removing(node)]))
            return []
        }
        if let own = declaration.members(named: "Action").first {
            context.diagnose(
                MacroDiagnostic.error(
                    "action", at: own,
                    "'@StateMachine' generates 'Action', and the type already declares one: remove the attribute or this 'Action'",
                    fixIts: [.removing(node)]))
            return []
        }
        let access = declaration.memberAccess(in: context)
        return ["\(raw: access)typealias Action = StateMachines.StateMachineEvent<Input, IOResult>"]
    }

    static func expansion(
        of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
        providingAttributesFor member: some DeclSyntaxProtocol, in context: some MacroExpansionContext
    ) throws -> [AttributeSyntax] {
        // The macros that run effects mark the results themselves.
        let isMarked = ComposableStateMachineMacro.bodyWriters.contains {
            declaration.attributes.attribute(named: $0) != nil
        }
        return ReducerMacro.casePathAttribute(for: member, types: isMarked ? ["Input"] : ["Input", "IOResult"])
    }
}

/// The macros `@NestedState`, `@Forward` and `@ForwardValue`: markers that `@ComposableStateMachine` reads.
struct MarkerMacro: PeerMacro {
    static func expansion(
        of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] { [] }
}

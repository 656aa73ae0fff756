import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// The macro `@ComposableStateMachine`: runs the children of a machine before the machine itself.
struct ComposableStateMachineMacro: MemberMacro {
    static let attributeName = "ComposableStateMachine"
    /// The macros that generate `body` together with this one.
    static let bodyWriters = ["EffectComposition", "ComposableEffectRunner"]

    static func expansion(
        of node: AttributeSyntax, providingMembersOf declaration: some DeclGroupSyntax,
        conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        guard declaration.is(StructDeclSyntax.self) || declaration.is(ActorDeclSyntax.self) else {
            context.diagnose(
                MacroDiagnostic.error(
                    "type", at: declaration.introducer,
                    "'@ComposableStateMachine' can only be attached to a struct or an actor",
                    fixIts: [.removing(node)]))
            return []
        }
        let nesting = Nesting(declaration)
        for diagnostic in nesting.diagnostics { context.diagnose(diagnostic) }
        let access =
            declaration.memberAccess(in: context)
            + (declaration.is(ActorDeclSyntax.self) ? "nonisolated " : "")
        var members: [DeclSyntax] = []
        if !nesting.children.isEmpty, declaration.members(named: "nestedBody").isEmpty {
            let reducers = nesting.children.map { reducer($0, nesting.forwards) }
            members.append(
                """
                @StateMachines.ReducerBuilder<Self.State, Self.Action>
                \(raw: access)var nestedBody: some StateMachines.Reducer<State, Action> {
                \(raw: reducers.joined(separator: "\n"))
                }
                """)
        }
        let isWritten = bodyWriters.contains { declaration.attributes.attribute(named: $0) != nil }
        if !isWritten, declaration.members(named: "body").isEmpty {
            members.append(
                """
                @StateMachines.ReducerBuilder<Self.State, Self.Action>
                \(raw: access)var body: some StateMachines.Reducer<State, Action> {
                    self.nestedBody
                    StateMachines.StateMachineReducer(machine: self)
                }
                """)
        }
        return members
    }

    private static func reducer(_ child: NestedChild, _ forwards: [ForwardedCase]) -> String {
        let forwards = forwards.filter { $0.feature == child.feature }
        let down = forwards.map { $0.element.guarded("case \($0.pattern): return \($0.event)") }
        // Inputs come only from outside: the child's effects send results.
        let up = forwards.filter { $0.target == .ioResult && $0.own == .ioResult }.map {
            $0.element.guarded("case \($0.eventPattern): return \($0.ownEvent)")
        }
        return child.guarded(
            """
            StateMachines.NestedStateMachine<State, Action, \(child.feature)>(
                state: \(child.path),
                toChildAction: { action in
                    switch Action.map(action) {
                    \(down.joined(separator: "\n"))
                    default: return nil
                    }
                },
                fromChildAction: { action in
                    switch \(child.feature).Action.map(action) {
                    \(up.joined(separator: "\n"))
                    default: return nil
                    }
                },
                child: { \(child.feature)() })
            """)
    }
}

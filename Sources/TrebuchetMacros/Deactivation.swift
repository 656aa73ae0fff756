import SwiftSyntax

/// The method `deactivate()` of an actor, which runs before it is let go.
struct Deactivation {
    let isAsync: Bool
    let canThrow: Bool

    static func isDeclared(by function: FunctionDeclSyntax) -> Bool {
        function.name.plainText == "deactivate" && function.signature.parameterClause.parameters.isEmpty
            && function.genericParameterClause == nil && !function.modifiers.isStatic
            && !function.modifiers.isDistributed
    }

    init(_ function: FunctionDeclSyntax) {
        let effects = function.signature.effectSpecifiers
        isAsync = effects?.asyncSpecifier != nil
        canThrow = effects?.throwsClause != nil
    }

    /// As the dispatch table has it.
    var source: String {
        "{ actor in \(canThrow ? "try " : "")\(isAsync ? "await " : "")actor.deactivate() }"
    }
}

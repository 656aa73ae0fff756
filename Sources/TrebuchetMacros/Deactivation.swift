import SwiftDiagnostics
import SwiftReading
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

    /// For a distributed method of this name, which clients call and nothing else.
    static func warning(about function: FunctionDeclSyntax) -> Diagnostic? {
        guard function.name.plainText == "deactivate", function.signature.parameterClause.parameters.isEmpty else {
            return nil
        }
        let text =
            "a distributed 'deactivate()' is for clients to call; without 'distributed' it runs when the actor is let go of"
        return Diagnostic(
            node: function.name, message: Problem(id: "distributedDeactivate", message: text, severity: .warning))
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

import SwiftDiagnostics
import SwiftReading
import SwiftSyntax

/// The method `deactivate()` of an actor, which runs before its deactivation.
struct Deactivation {
    let isAsync: Bool
    let canThrow: Bool

    static func isDeclared(by function: FunctionDeclSyntax) -> Bool {
        function.name.plainText == "deactivate" && function.signature.parameterClause.parameters.isEmpty
            && function.genericParameterClause == nil && !function.modifiers.isStatic
            && !function.modifiers.isDistributed
    }

    /// Returns a warning for a distributed method of this name, which only clients call.
    static func warning(about function: FunctionDeclSyntax) -> Diagnostic? {
        guard function.name.plainText == "deactivate", function.signature.parameterClause.parameters.isEmpty else {
            return nil
        }
        let text =
            "a distributed 'deactivate()' can be called by clients; remove 'distributed' to run it when the actor is deactivated"
        return Diagnostic(
            node: function.name,
            message: MacroDiagnostic(id: "distributedDeactivate", message: text, severity: .warning))
    }

    init(_ function: FunctionDeclSyntax) {
        let effects = function.signature.effectSpecifiers
        isAsync = effects?.asyncSpecifier != nil
        canThrow = effects?.throwsClause != nil
    }

    /// The argument in the dispatch table.
    var source: String {
        "{ actor in \(canThrow ? "try " : "")\(isAsync ? "await " : "")actor.deactivate() }"
    }
}

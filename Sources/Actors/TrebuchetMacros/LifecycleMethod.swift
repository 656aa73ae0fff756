import SwiftDiagnostics
import SwiftReading
import SwiftSyntax

/// A method of an actor that the server calls by its name: `activate()`, `deactivate()` or `alarm(_:)`.
struct LifecycleMethod {
    /// The methods, by their names.
    enum Kind: String, CaseIterable {
        case activate, deactivate, alarm

        /// The event at which the server calls the method.
        fileprivate var event: String {
            switch self {
            case .activate: "the actor is activated"
            case .deactivate: "the actor is deactivated"
            case .alarm: "an alarm is due"
            }
        }

        fileprivate var signature: String { self == .alarm ? "alarm(_:)" : "\(rawValue)()" }

        fileprivate func accepts(_ parameters: FunctionParameterListSyntax) -> Bool {
            guard self == .alarm else { return parameters.isEmpty }
            guard let parameter = parameters.first, parameters.count == 1 else { return false }
            let type = parameter.type.trimmedDescription
            return parameter.firstName.tokenKind == .wildcard && (type == "Alarm" || type.hasSuffix(".Alarm"))
        }
    }

    let kind: Kind
    private let isAsync: Bool
    private let canThrow: Bool

    /// Creates the method that `function` declares; nil for another method.
    init?(_ function: FunctionDeclSyntax) {
        guard let kind = Self.kind(of: function), function.genericParameterClause == nil, !function.modifiers.isStatic,
            !function.modifiers.isDistributed
        else { return nil }
        self.kind = kind
        let effects = function.signature.effectSpecifiers
        isAsync = effects?.asyncSpecifier != nil
        canThrow = effects?.throwsClause != nil
    }

    private static func kind(of function: FunctionDeclSyntax) -> Kind? {
        Kind(rawValue: function.name.plainText).flatMap {
            $0.accepts(function.signature.parameterClause.parameters) ? $0 : nil
        }
    }

    /// Returns a warning for a distributed method of such a name, which only clients call.
    static func warning(about function: FunctionDeclSyntax) -> Diagnostic? {
        guard function.modifiers.isDistributed, let kind = kind(of: function) else { return nil }
        let text =
            "a distributed '\(kind.signature)' can be called by clients; remove 'distributed' to run it when \(kind.event)"
        return Diagnostic(
            node: function.name,
            message: MacroDiagnostic(
                id: "distributed\(kind.rawValue.prefix(1).uppercased())\(kind.rawValue.dropFirst())", message: text,
                severity: .warning))
    }

    /// Returns an error for such a method in `#if`: the dispatch table would refer to it in every build.
    func error(about function: FunctionDeclSyntax, if condition: String?) -> Diagnostic? {
        guard condition != nil else { return nil }
        return MacroDiagnostic.error(
            "conditionalLifecycle", at: function.name,
            "'\(kind.signature)' cannot be declared in '#if'; put the condition into its body")
    }

    /// The argument in the dispatch table, such as `activate: { actor in actor.activate() }`.
    var argument: String {
        let (parameter, argument) = kind == .alarm ? (", alarm", "alarm") : ("", "")
        let effects = "\(canThrow ? "try " : "")\(isAsync ? "await " : "")"
        return "\(kind.rawValue): { actor\(parameter) in \(effects)actor.\(kind.rawValue)(\(argument)) }"
    }
}

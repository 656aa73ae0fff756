import SwiftDiagnostics
import SwiftSyntax

/// Recognizes types that are syntactically not `Codable & Sendable`.
///
/// The compiler checks all other types against the constraint of `_StateCell`.
enum UnstreamableType {
    /// Returns the error about `type`, or about a part of it such as the element of an array, if there is one.
    static func problem(of type: TypeSyntax) -> Diagnostic? {
        switch type.as(TypeSyntaxEnum.self) {
        case .functionType: report(type, "a function")
        case .attributedType(let attributed): problem(of: attributed.baseType)
        case .metatypeType: report(type, "a metatype")
        case .someOrAnyType(let some) where some.someOrAnySpecifier.tokenKind == .keyword(.any):
            report(type, "an existential", hint: "; use an enum with a case for each type, or a concrete type")
        case .someOrAnyType: report(type, "an opaque type", hint: "; name the type")
        case .identifierType(let name) where ["Any", "AnyObject"].contains(name.name.text):
            report(type, "an existential", hint: "; use a concrete type")
        case .identifierType(let name): name.genericArgumentClause.flatMap(problem(ofArgumentsIn:))
        case .memberType(let member): member.genericArgumentClause.flatMap(problem(ofArgumentsIn:))
        case .tupleType(let tuple): problem(of: tuple)
        case .arrayType(let array): problem(of: array.element)
        case .dictionaryType(let dictionary): problem(of: dictionary.key) ?? problem(of: dictionary.value)
        case .optionalType(let optional): problem(of: optional.wrappedType)
        case .implicitlyUnwrappedOptionalType(let optional): problem(of: optional.wrappedType)
        default: nil
        }
    }

    private static func problem(of tuple: TupleTypeSyntax) -> Diagnostic? {
        if let only = tuple.elements.first, tuple.elements.count == 1 { return problem(of: only.type) }
        return report(TypeSyntax(tuple), "a tuple", hint: "; use a struct")
    }

    private static func problem(ofArgumentsIn clause: GenericArgumentClauseSyntax) -> Diagnostic? {
        for argument in clause.arguments {
            if case .type(let type) = argument.argument, let problem = problem(of: type) { return problem }
        }
        return nil
    }

    private static func report(_ type: TypeSyntax, _ kind: String, hint: String = "") -> Diagnostic {
        MacroDiagnostic.error(
            "uncodable", at: type,
            "a stream needs a type that is Codable and Sendable; '\(type.trimmedDescription)' is \(kind)\(hint)"
        )
    }
}

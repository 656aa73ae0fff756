import SwiftDiagnostics
import SwiftReading
import SwiftSyntax
import SwiftSyntaxBuilder

/// A `distributed func` or a `distributed var`, read from its declaration.
struct DistributedMember {
    /// A parameter of the member.
    struct Parameter {
        /// The argument label with its colon and a space, or empty.
        let label: String
        let type: TypeSyntax
    }

    /// The name used by clients: `addTodo(title:)`.
    let wireName: String
    /// The token for diagnostics about the name.
    let nameToken: TokenSyntax
    let isProperty: Bool
    let parameters: [Parameter]
    let generics: GenericSignature
    let isAsync: Bool
    let canThrow: Bool
    /// The type in `throws(BankError)`; nil for an untyped `throws` and for a member that does not throw.
    let errorType: TypeSyntax?
    let returnsValue: Bool
    let isIdempotent: Bool
    let isRedacted: Bool
    /// The route of a method marked `@HTTP`; nil for an invalid one, whose errors that macro reports.
    let route: HTTPMethodRoute?

    init(_ function: FunctionDeclSyntax) throws(DiagnosticsError) {
        let clause = function.signature.parameterClause.parameters
        let labels = clause.map { $0.firstName.plainText }
        nameToken = function.name
        isProperty = false
        wireName = WireName.method(function)
        var generics = try GenericSignature(function)
        parameters = zip(clause, labels).map { parameter, label in
            let type = generics.naming(opaqueTypesIn: parameter.type.asValueType)
            return Parameter(label: Self.argumentLabel(label), type: type)
        }
        self.generics = generics
        let effects = function.signature.effectSpecifiers
        isAsync = effects?.asyncSpecifier != nil
        (canThrow, errorType) = Self.errors(effects?.throwsClause)
        returnsValue = function.signature.returnClause.map { !$0.type.isVoid } ?? false
        isIdempotent = function.attributes.attribute(named: IdempotentMacro.attributeName) != nil
        isRedacted = function.attributes.attribute(named: RedactedMacro.attributeName) != nil
        route = function.attributes.attribute(named: HTTPMacro.attributeName)
            .flatMap { try? HTTPMethodRoute(function, $0) }
    }

    /// Reads a computed property; nil without a getter, which the compiler reports.
    init?(_ variable: VariableDeclSyntax) {
        guard let binding = variable.bindings.first, let block = binding.accessorBlock,
            let name = binding.pattern.as(IdentifierPatternSyntax.self)?.identifier
        else { return nil }
        var effects: AccessorEffectSpecifiersSyntax?
        if case .accessors(let accessors) = block.accessors {
            effects = accessors.first { $0.accessorSpecifier.tokenKind == .keyword(.get) }?.effectSpecifiers
        }
        nameToken = name
        isProperty = true
        wireName = WireName.property(name)
        parameters = []
        generics = GenericSignature()
        isAsync = effects?.asyncSpecifier != nil
        (canThrow, errorType) = Self.errors(effects?.throwsClause)
        returnsValue = true
        isIdempotent = false
        isRedacted = false
        route = nil
    }

    /// Returns a label as written in a call. Only a few keywords need backticks there.
    private static func argumentLabel(_ name: String) -> String {
        switch name {
        case "_": ""
        case "inout", "var", "let": "`\(name)`: "
        default: "\(name): "
        }
    }

    private static func errors(_ clause: ThrowsClauseSyntax?) -> (canThrow: Bool, type: TypeSyntax?) {
        guard let clause else { return (false, nil) }
        guard let type = clause.type?.trimmed else { return (true, nil) }
        switch type.description {
        case "Never", "Swift.Never": return (false, nil)
        case "any Error", "any Swift.Error", "Error", "Swift.Error": return (true, nil)
        default: return (true, type)
        }
    }
}

extension TypeSyntax {
    /// The type to decode: without ownership modifiers such as `consuming`, and with `T?` for `T!`.
    fileprivate var asValueType: TypeSyntax {
        if let attributed = self.as(AttributedTypeSyntax.self) { return attributed.baseType.asValueType }
        if let unwrapped = self.as(ImplicitlyUnwrappedOptionalTypeSyntax.self) {
            return TypeSyntax(OptionalTypeSyntax(wrappedType: unwrapped.wrappedType.trimmed))
        }
        return trimmed
    }

    fileprivate var isVoid: Bool {
        if let tuple = self.as(TupleTypeSyntax.self) { return tuple.elements.isEmpty }
        return ["Void", "Swift.Void"].contains(trimmedDescription)
    }
}

import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder

/// The generic parameters of a distributed method, and their constraints.
///
/// The server receives the names of the generic arguments. It can call the method if it can open each as `any (P &
/// Q).Type`, so only conformances of the parameters themselves are supported.
struct GenericSignature {
    /// A generic parameter with its constraints.
    struct Parameter {
        let name: String
        /// The protocols, in the order written; empty if any type is allowed.
        var protocols: [String] = []

        /// The existential metatype of types that satisfy the protocols.
        var metatype: String? {
            switch protocols.count {
            case 0: nil
            case 1: "any \(protocols[0]).Type"
            default: "any (\(protocols.joined(separator: " & "))).Type"
            }
        }
    }

    private(set) var parameters: [Parameter] = []

    init() {}

    init(_ function: FunctionDeclSyntax) throws(DiagnosticsError) {
        for parameter in function.genericParameterClause?.parameters ?? [] {
            if let specifier = parameter.specifier {
                throw Self.unsupported(specifier, "a parameter pack", of: function)
            }
            var own = Parameter(name: parameter.name.text)
            if let constraint = parameter.inheritedType {
                own.protocols = try Self.protocols(in: constraint, of: function)
            }
            parameters.append(own)
        }
        for requirement in function.genericWhereClause?.requirements ?? [] {
            guard case .conformanceRequirement(let conformance) = requirement.requirement,
                let index = parameters.firstIndex(where: { $0.name == conformance.leftType.trimmedDescription })
            else {
                let text = requirement.requirement.trimmedDescription
                throw Self.unsupported(requirement.requirement, "the requirement '\(text)'", of: function)
            }
            parameters[index].protocols += try Self.protocols(in: conformance.rightType, of: function)
        }
    }

    var isEmpty: Bool { parameters.isEmpty }

    /// The generic clause, such as `<T: P & Q, U: R>`, including the requirements of a `where` clause.
    var clause: String {
        let list = parameters.map { parameter in
            parameter.protocols.isEmpty
                ? parameter.name : "\(parameter.name): \(parameter.protocols.joined(separator: " & "))"
        }
        return "<\(list.joined(separator: ", "))>"
    }

    /// Names each `some P` in the type of a parameter, since a local function must repeat it in several places.
    mutating func naming(opaqueTypesIn type: TypeSyntax) -> TypeSyntax {
        let namer = OpaqueTypeNamer(next: parameters.count)
        let named = namer.rewrite(type).as(TypeSyntax.self) ?? type
        parameters += namer.found
        return named
    }

    private static func protocols(
        in constraint: TypeSyntax, of function: FunctionDeclSyntax
    ) throws(DiagnosticsError) -> [String] {
        if let composition = constraint.as(CompositionTypeSyntax.self) {
            var protocols: [String] = []
            for element in composition.elements { protocols += try Self.protocols(in: element.type, of: function) }
            return protocols
        }
        guard constraint.is(IdentifierTypeSyntax.self) || constraint.is(MemberTypeSyntax.self) else {
            throw unsupported(constraint, "the constraint '\(constraint.trimmedDescription)'", of: function)
        }
        return [constraint.trimmedDescription]
    }

    private static func unsupported(
        _ node: some SyntaxProtocol, _ what: String, of function: FunctionDeclSyntax
    ) -> DiagnosticsError {
        DiagnosticsError(diagnostics: [
            MacroDiagnostic.error(
                "generics", at: node,
                "'\(function.name.text)' cannot be called remotely with \(what): "
                    + "a generic parameter of a distributed method may only conform to protocols ('T: P & Q')")
        ])
    }
}

/// Replaces each `some P & Q` by a name and stores its protocols.
private final class OpaqueTypeNamer: SyntaxRewriter {
    private let first: Int
    private(set) var found: [GenericSignature.Parameter] = []

    init(next: Int) {
        first = next
        super.init()
    }

    override func visit(_ node: SomeOrAnyTypeSyntax) -> TypeSyntax {
        guard node.someOrAnySpecifier.tokenKind == .keyword(.some) else { return super.visit(node) }
        let name = "Opaque\(first + found.count)"
        let protocols =
            node.constraint.as(CompositionTypeSyntax.self)?.elements.map { $0.type.trimmedDescription }
            ?? [node.constraint.trimmedDescription]
        found.append(GenericSignature.Parameter(name: name, protocols: protocols))
        return "\(raw: name)"
    }
}

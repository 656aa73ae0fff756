import SwiftDiagnostics
import SwiftReading
import SwiftSyntax
import SwiftSyntaxMacros

/// The marker `@HTTP`: the method is a route over HTTP.
struct HTTPMacro: MethodMarkerMacro {
    static let attributeName = "HTTP"
    static let problem = "http"
    static let reason = "only distributed methods are called over a network"

    static func expansion(
        of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        try checkPlace(of: node, declaration, in: context)
        // The dispatch table omits an invalid route.
        if let function = declaration.as(FunctionDeclSyntax.self) { _ = try HTTPMethodRoute(function, node) }
        return []
    }
}

/// The route of a method marked `@HTTP`, read from its declaration.
struct HTTPMethodRoute {
    /// The form of a value in a path or a query.
    private enum Form: String { case text, number, boolean }

    /// The argument of the method's entry in the dispatch table.
    let source: String

    /// Reads the route. Throws the errors of the attribute.
    init(_ function: FunctionDeclSyntax, _ node: AttributeSyntax) throws(DiagnosticsError) {
        guard let attribute = HTTPAttribute(node) else {
            let methods = HTTPAttribute.methods.map { ".\($0)" }.joined(separator: ", ")
            throw Self.error(
                "literal", at: node,
                "'@HTTP' requires one of \(methods), and a path as a string literal, such as '@HTTP(.post, \"/orders/:id\")', "
                    + "because it is read when the code is compiled")
        }
        guard attribute.components != nil else {
            throw Self.error(
                "path", at: attribute.pathExpression,
                "'\(attribute.path)' is not the path of a route: write a slash, then components with ASCII letters, digits and "
                    + "percent-encoding, or parameters, such as '/orders/:id'")
        }
        guard function.genericParameterClause == nil else {
            throw Self.error(
                "generic", at: function.name,
                "'@HTTP' cannot serve the generic method '\(function.name.plainText)', because a request names no types"
            )
        }
        let parameters = Array(function.signature.parameterClause.parameters)
        try Self.checkNames(parameters, attribute, function)
        var arguments: [String] = []
        for parameter in parameters { arguments.append(try Self.argument(parameter, attribute)) }
        source = ".route(\"\(attribute.method)\", \"\(attribute.path)\", [\(arguments.joined(separator: ", "))])"
    }

    /// Checks that the names in the path are those of different parameters.
    private static func checkNames(
        _ parameters: [FunctionParameterSyntax], _ attribute: HTTPAttribute, _ function: FunctionDeclSyntax
    ) throws(DiagnosticsError) {
        var names: Set<String> = []
        for parameter in parameters {
            let name = HTTPAttribute.name(of: parameter)
            guard name != "_" else {
                throw error(
                    "unnamed", at: parameter.firstName,
                    "'@HTTP' requires a name for each parameter; give this one a label")
            }
            guard names.insert(name).inserted else {
                throw error(
                    "duplicate", at: parameter.firstName,
                    "two parameters are named '\(name)' in requests; change the label of one of them")
            }
        }
        var inPath: Set<String> = []
        for name in attribute.parameters {
            guard inPath.insert(name).inserted else {
                throw error(
                    "path.duplicate", at: attribute.pathExpression,
                    "the path has the parameter ':\(name)' twice; change the name of one of them")
            }
            guard names.contains(name) else {
                let known = names.sorted().map { "'\($0)'" }.joined(separator: ", ")
                throw error(
                    "path.unknown", at: attribute.pathExpression,
                    "the path has the parameter ':\(name)', but '\(function.name.plainText)' has no parameter of this name"
                        + (known.isEmpty ? "" : "; it has \(known)"))
            }
        }
    }

    /// Returns the source of an argument.
    private static func argument(
        _ parameter: FunctionParameterSyntax, _ attribute: HTTPAttribute
    ) throws(DiagnosticsError) -> String {
        let name = HTTPAttribute.name(of: parameter)
        let (type, isOptional) = unwrapped(parameter.type)
        let optional = isOptional ? ", optional: true" : ""
        if attribute.parameters.contains(name) {
            guard !isOptional, let form = form(of: type) else {
                throw error(
                    "path.type", at: parameter.type,
                    "'\(name)' is in the path, where its type '\(parameter.type.trimmedDescription)' is not supported; \(supported)"
                )
            }
            return ".path(\"\(name)\", .\(form.rawValue))"
        }
        guard !attribute.hasBody else { return ".body(\"\(name)\"\(optional))" }
        guard let form = form(of: type) else {
            throw error(
                "query.type", at: parameter.type,
                "'\(name)' is in the query, since a request of .\(attribute.method) has no body; its type "
                    + "'\(parameter.type.trimmedDescription)' is not supported there; \(supported), or an optional one of these"
            )
        }
        return ".query(\"\(name)\", .\(form.rawValue)\(optional))"
    }

    private static let supported = "use String, UUID, Bool, an integer or a floating-point type"

    private static func form(of type: TypeSyntax) -> Form? {
        let name = type.trimmedDescription
        switch name.hasPrefix("Swift.") ? String(name.dropFirst(6)) : name {
        case "String", "UUID", "Foundation.UUID": return .text
        case "Bool": return .boolean
        case "Int", "Int8", "Int16", "Int32", "Int64", "UInt", "UInt8", "UInt16", "UInt32", "UInt64", "Double", "Float":
            return .number
        default: return nil
        }
    }

    /// Returns a type without one optional around it.
    private static func unwrapped(_ type: TypeSyntax) -> (type: TypeSyntax, isOptional: Bool) {
        if let optional = type.as(OptionalTypeSyntax.self) { return (optional.wrappedType, true) }
        if let optional = type.as(ImplicitlyUnwrappedOptionalTypeSyntax.self) { return (optional.wrappedType, true) }
        if let named = type.as(IdentifierTypeSyntax.self), named.name.text == "Optional",
            case .type(let wrapped)? = named.genericArgumentClause?.arguments.first?.argument
        {
            return (wrapped, true)
        }
        return (type, false)
    }

    private static func error(_ id: String, at node: some SyntaxProtocol, _ message: String) -> DiagnosticsError {
        DiagnosticsError(diagnostics: [MacroDiagnostic.error("http.\(id)", at: node, message)])
    }
}

package import SwiftSyntax

/// The arguments of `@HTTP(.post, "/orders/:id")`, read from the attribute.
package struct HTTPAttribute: Sendable {
    /// The methods of routes, as the attribute has them.
    package static let methods = ["get", "post", "put", "patch", "delete"]

    /// The method, such as `post`.
    package let method: String
    package let path: String
    /// The expression of the path, for diagnostics.
    package let pathExpression: ExprSyntax

    /// Returns nil if an argument is not a literal, which the macro reports.
    package init?(_ attribute: AttributeSyntax) {
        guard case .argumentList(let arguments)? = attribute.arguments, arguments.count == 2,
            let method = arguments.first?.expression.as(MemberAccessExprSyntax.self)?.declName.baseName.text,
            Self.methods.contains(method), let last = arguments.last,
            let path = last.expression.as(StringLiteralExprSyntax.self)?.representedLiteralValue
        else { return nil }
        (self.method, self.path, pathExpression) = (method, path, last.expression)
    }

    /// Indicates whether requests have a body with the parameters that are not in the path. Without one they are in the query.
    package var hasBody: Bool { method != "get" && method != "delete" }

    /// The components of the path after its slash, such as `orders` and `:id`; nil for a path that no route can have.
    package var components: [String]? {
        guard path.hasPrefix("/"), path.utf8.allSatisfy(Self.isPathByte) else { return nil }
        if path == "/" { return [] }
        let components = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        let areValid = components.allSatisfy { component in
            guard component.hasPrefix(":") else { return !component.isEmpty }
            return component.count > 1 && component.dropFirst().utf8.allSatisfy(Self.isNameByte)
        }
        return areValid ? components : nil
    }

    /// The names of the parameters in the path.
    package var parameters: [String] {
        (components ?? []).filter { $0.hasPrefix(":") }.map { String($0.dropFirst()) }
    }

    /// Returns the name of a method's parameter in requests: its label, or its name if it has no label.
    package static func name(of parameter: FunctionParameterSyntax) -> String {
        let label = parameter.firstName.plainText
        return label == "_" ? parameter.secondName?.plainText ?? label : label
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "_"): true
        default: false
        }
    }

    private static func isPathByte(_ byte: UInt8) -> Bool {
        isNameByte(byte) || "/-.~!$&'()*+,;=:@%".utf8.contains(byte)
    }
}

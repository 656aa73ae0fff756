import SwiftDiagnostics
import SwiftSyntax

/// A case of an enum, read from its declaration.
struct EnumCase {
    /// A value of the case's payload.
    struct Payload {
        /// The label in a call, or nil.
        let label: String?
        /// The name of the value: the second name, or the label.
        let name: String?
        let type: TypeSyntax

        /// True if the type is written as a function, whose parameter must be escaping.
        var isClosure: Bool { Self.isFunction(type) }

        private static func isFunction(_ type: TypeSyntax) -> Bool {
            if let attributed = type.as(AttributedTypeSyntax.self) { return isFunction(attributed.baseType) }
            if let tuple = type.as(TupleTypeSyntax.self), tuple.elements.count == 1, let only = tuple.elements.first {
                return isFunction(only.type)
            }
            return type.is(FunctionTypeSyntax.self)
        }
    }

    /// The name, with its backticks if it has any.
    let name: TokenSyntax
    let payload: [Payload]
    /// The condition of the enclosing `#if`, as source text.
    let condition: String?

    /// The pattern of the case, such as `.pair(id: let value0, let value1)`.
    var pattern: String {
        let values = payload.enumerated().map { index, part in
            (part.label.map { "\($0): " } ?? "") + "let value\(index)"
        }
        return ".\(name.text)" + (values.isEmpty ? "" : "(\(values.joined(separator: ", ")))")
    }

    /// Returns the cases of one declaration.
    static func cases(of declaration: EnumCaseDeclSyntax, if condition: String?) -> [EnumCase] {
        declaration.elements.map { EnumCase($0, if: condition) }
    }

    /// Returns true if both cases may exist. Two different conditions are assumed to exclude each other.
    func canCoexist(with other: EnumCase) -> Bool {
        CompilationCondition.mayHold(condition, with: other.condition)
    }

    /// Returns errors for cases that repeat the name of an earlier one: Swift's patterns cannot distinguish them, and
    /// may match the wrong one at run time.
    static func overloads(_ cases: [EnumCase], reportedFor macro: String) -> [Diagnostic] {
        cases.enumerated().compactMap { index, element in
            let plain = element.name.plainText
            let other = cases[..<index].first { $0.name.plainText == plain && $0.canCoexist(with: element) }
            guard let other else { return nil }
            let label = element.payload.first?.name.map { $0.prefix(1).uppercased() + $0.dropFirst() }
            let proposal = plain + (label ?? "2")
            return MacroDiagnostic.error(
                "overload", at: element.name,
                "\(macro) found two cases named '\(plain)': rename one of them",
                notes: [Note("overload.note", at: other.name, "the other '\(plain)' is here")],
                fixIts: [
                    .replacing("rename it to '\(proposal)'", element.name, with: TokenSyntax.identifier(proposal))
                ])
        }
    }

    /// Returns `source`, enclosed in the `#if` and `#endif` of the case.
    func guarded(_ source: String) -> String { CompilationCondition.guarding(source, by: condition) }
}

extension EnumDeclSyntax {
    /// All cases, including those inside `#if`.
    var cases: [EnumCase] {
        memberBlock.members.conditional.flatMap { member, condition in
            member.as(EnumCaseDeclSyntax.self).map { EnumCase.cases(of: $0, if: condition) } ?? []
        }
    }

    /// The names of the types that are declared inside.
    var nestedTypeNames: Set<String> {
        Set(
            memberBlock.members.compactMap { member in
                guard let named = member.decl.asProtocol((any NamedDeclSyntax).self) else { return nil }
                return member.decl.is(FunctionDeclSyntax.self) ? nil : named.name.plainText
            })
    }
}

extension EnumCase {
    fileprivate init(_ element: EnumCaseElementSyntax, if condition: String?) {
        name = element.name
        payload = (element.parameterClause?.parameters ?? []).map { parameter in
            let label = parameter.firstName.flatMap { $0.tokenKind == .wildcard ? nil : $0.plainText }
            // These are the only keywords that need backticks as labels in a call.
            let isReserved = label.map { ["inout", "let", "var"].contains($0) } ?? false
            return Payload(
                label: isReserved ? label?.asIdentifier : label, name: parameter.secondName?.plainText ?? label,
                type: parameter.type.trimmed)
        }
        self.condition = condition
    }
}

/// Qualifies a type written inside an enum for use outside it.
final class TypeQualifier: SyntaxRewriter {
    private let owner: String
    private let nested: Set<String>

    /// Creates a qualifier.
    ///
    /// - Parameter nested: the names of types that are visible only inside `owner`.
    init(owner: String, nested: Set<String>) {
        self.owner = owner
        self.nested = nested
        super.init()
    }

    static func qualify(_ type: TypeSyntax, owner: String, nested: Set<String> = []) -> String {
        TypeQualifier(owner: owner, nested: nested).rewrite(type).trimmedDescription
    }

    override func visit(_ type: IdentifierTypeSyntax) -> TypeSyntax {
        let name = type.name.plainText
        if name == "Self" {
            var named = type
            named.name.tokenKind = .identifier(owner)
            return TypeSyntax(named)
        }
        guard nested.contains(name) else { return super.visit(type) }
        guard var qualified = super.visit(type).as(IdentifierTypeSyntax.self) else { return TypeSyntax(type) }
        qualified.name.tokenKind = .identifier("\(owner).\(type.name.text)")
        return TypeSyntax(qualified)
    }
}

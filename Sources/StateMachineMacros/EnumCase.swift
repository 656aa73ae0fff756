import SwiftDiagnostics
import SwiftSyntax

/// A case of an enum, read from its declaration.
struct EnumCase {
    struct Payload {
        /// The label as it stands in a call, or nil.
        let label: String?
        /// What to call the value: the second name, or the label.
        let name: String?
        let type: TypeSyntax
    }

    /// With its backticks, if it has any.
    let name: TokenSyntax
    let payload: [Payload]
    /// The condition of the `#if` that the case stands in, as source text.
    let condition: String?

    /// `.pair(id: let value0, let value1)`
    var pattern: String {
        let values = payload.enumerated().map { index, part in
            (part.label.map { "\($0): " } ?? "") + "let value\(index)"
        }
        return ".\(name.text)" + (values.isEmpty ? "" : "(\(values.joined(separator: ", ")))")
    }

    /// The cases that one declaration has.
    static func cases(of declaration: EnumCaseDeclSyntax) -> [EnumCase] {
        declaration.elements.map { EnumCase($0, if: nil) }
    }

    /// Whether both may be there: two different conditions are taken to exclude each other.
    func canCoexist(with other: EnumCase) -> Bool {
        condition == nil || other.condition == nil || condition == other.condition
    }

    /// Cases that share their name with one before: Swift's patterns cannot tell such cases apart, and take one for the
    /// other at run time.
    static func overloads(_ cases: [EnumCase], told by: String) -> [Diagnostic] {
        cases.enumerated().compactMap { index, element in
            let plain = element.name.plainText
            let other = cases[..<index].first { $0.name.plainText == plain && $0.canCoexist(with: element) }
            guard let other else { return nil }
            let label = element.payload.first?.name.map { $0.prefix(1).uppercased() + $0.dropFirst() }
            let proposal = plain + (label ?? "2")
            return Problem.error(
                "overload", at: element.name,
                "\(by) cannot tell two cases named '\(plain)' apart: give one of them another name",
                notes: [Note("overload.note", at: other.name, "the other '\(plain)' is here")],
                fixIts: [
                    .replacing("rename it to '\(proposal)'", element.name, with: TokenSyntax.identifier(proposal))
                ])
        }
    }

    /// `source` between `#if` and `#endif` where the case is.
    func guarded(_ source: String) -> String {
        condition.map { "#if \($0)\n\(source)\n#endif" } ?? source
    }
}

extension EnumDeclSyntax {
    /// All cases, those inside of `#if` included.
    var cases: [EnumCase] { Self.cases(memberBlock.members, under: nil) }

    /// The names of the types that are declared inside.
    var nestedTypeNames: Set<String> {
        Set(
            memberBlock.members.compactMap { member in
                guard let named = member.decl.asProtocol((any NamedDeclSyntax).self) else { return nil }
                return member.decl.is(FunctionDeclSyntax.self) ? nil : named.name.plainText
            })
    }

    private static func cases(_ members: MemberBlockItemListSyntax, under condition: String?) -> [EnumCase] {
        members.flatMap { member -> [EnumCase] in
            if let declaration = member.decl.as(EnumCaseDeclSyntax.self) {
                return declaration.elements.map { EnumCase($0, if: condition) }
            }
            guard let branches = member.decl.as(IfConfigDeclSyntax.self) else { return [] }
            var terms = condition.map { [$0] } ?? []
            return branches.clauses.flatMap { clause -> [EnumCase] in
                let own = clause.condition.map { "(\($0.trimmedDescription))" }
                let whole = (terms + [own].compactMap(\.self)).joined(separator: " && ")
                // A later branch is reached only where this one is not.
                if let own { terms.append("!" + own) }
                guard case .decls(let members) = clause.elements else { return [] }
                return cases(members, under: whole)
            }
        }
    }
}

extension EnumCase {
    fileprivate init(_ element: EnumCaseElementSyntax, if condition: String?) {
        name = element.name
        payload = (element.parameterClause?.parameters ?? []).map { parameter in
            let label = parameter.firstName.flatMap { $0.tokenKind == .wildcard ? nil : $0.plainText }
            // The only words of the language that a call does not take for labels.
            let isReserved = label.map { ["inout", "let", "var"].contains($0) } ?? false
            return Payload(
                label: isReserved ? label?.asIdentifier : label, name: parameter.secondName?.plainText ?? label,
                type: parameter.type.trimmed)
        }
        self.condition = condition
    }
}

/// Makes a type that was written inside of an enum readable from outside of it.
final class TypeQualifier: SyntaxRewriter {
    private let owner: String
    private let nested: Set<String>

    /// - Parameter nested: the names of types that only the inside of `owner` sees.
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

import SwiftSyntax

/// The condition of the enclosing `#if` of a declaration, as source text; nil without one.
enum CompilationCondition {
    /// Returns true if both conditions may hold. Two different conditions are assumed to exclude each other.
    static func mayHold(_ condition: String?, with other: String?) -> Bool {
        condition == nil || other == nil || condition == other
    }

    /// Returns `source`, enclosed in `#if` and `#endif` if there is a condition.
    static func guarding(_ source: String, by condition: String?) -> String {
        condition.map { "#if \($0)\n\(source)\n#endif" } ?? source
    }
}

extension MemberBlockItemListSyntax {
    /// The declarations, including those inside `#if`, with their conditions.
    var conditional: [(declaration: DeclSyntax, condition: String?)] { conditional(under: nil) }

    private func conditional(under condition: String?) -> [(declaration: DeclSyntax, condition: String?)] {
        flatMap { member -> [(declaration: DeclSyntax, condition: String?)] in
            guard let branches = member.decl.as(IfConfigDeclSyntax.self) else { return [(member.decl, condition)] }
            var terms = condition.map { [$0] } ?? []
            return branches.clauses.flatMap { clause -> [(declaration: DeclSyntax, condition: String?)] in
                let own = clause.condition.map { "(\($0.trimmedDescription))" }
                let whole = (terms + [own].compactMap(\.self)).joined(separator: " && ")
                // A later branch is active only if this one is not.
                if let own { terms.append("!" + own) }
                guard case .decls(let members) = clause.elements else { return [] }
                return members.conditional(under: whole)
            }
        }
    }
}

import SwiftSyntax

/// A value read from a member, with the `#if` condition of the member.
///
/// A macro sees all branches and cannot tell which is active, so the code generated for a member repeats the
/// condition.
struct ConditionallyCompiled<Value> {
    let value: Value
    /// The condition as source text, or nil for an unconditional member.
    let condition: String?

    init(_ value: Value, if condition: String? = nil) {
        self.value = value
        self.condition = condition
    }

    /// Returns true if this and `other` may both exist. Two different conditions are assumed to exclude each other.
    func canCoexist<Other>(with other: ConditionallyCompiled<Other>) -> Bool {
        condition == nil || other.condition == nil || condition == other.condition
    }

    /// Returns `source`, enclosed in `#if` and `#endif` if there is a condition.
    func guarded(_ source: String) -> String {
        condition.map { "#if \($0)\n\(source)\n#endif" } ?? source
    }
}

extension MemberBlockItemListSyntax {
    /// Returns all members, including those inside `#if`.
    func flattened(under outer: String? = nil) -> [ConditionallyCompiled<DeclSyntax>] {
        flatMap { member in
            guard let branches = member.decl.as(IfConfigDeclSyntax.self) else {
                return [ConditionallyCompiled(member.decl, if: outer)]
            }
            var terms = outer.map { [$0] } ?? []
            return branches.clauses.flatMap { clause in
                let own = clause.condition.map { "(\($0.trimmedDescription))" }
                let condition = (terms + [own].compactMap(\.self)).joined(separator: " && ")
                // A later branch is active only if this one is not.
                if let own { terms.append("!" + own) }
                guard case .decls(let members) = clause.elements else { return [ConditionallyCompiled<DeclSyntax>]() }
                return members.flattened(under: condition)
            }
        }
    }
}

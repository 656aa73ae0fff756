internal import SwiftSyntax

/// Selects the active branches of `#if`: those of a server on Linux.
struct BuildConditions {
    /// The flags that `-D` defines. Other flags are false, as in a release build.
    var defines: Set<String> = []

    /// Modules that are not available on a Linux server.
    private static let absentModules: Set<String> = [
        "AppKit", "Combine", "CoreData", "CoreGraphics", "CoreLocation", "Cocoa", "CryptoKit", "Darwin", "Musl",
        "ObjectiveC",
        "OSLog", "SwiftData", "SwiftUI", "UIKit", "WatchKit", "WinSDK", "os",
    ]

    /// Returns the active declarations of a block of members, including those inside `#if`.
    func members(_ members: MemberBlockItemListSyntax) -> [DeclSyntax] {
        members.flatMap { member -> [DeclSyntax] in
            guard let branches = member.decl.as(IfConfigDeclSyntax.self) else { return [member.decl] }
            guard case .decls(let active) = active(branches)?.elements else { return [] }
            return self.members(active)
        }
    }

    /// Returns the active declarations at the top level of a file.
    func declarations(_ items: CodeBlockItemListSyntax) -> [DeclSyntax] {
        items.flatMap { item -> [DeclSyntax] in
            guard case .decl(let declaration) = item.item else { return [] }
            guard let branches = declaration.as(IfConfigDeclSyntax.self) else { return [declaration] }
            guard case .statements(let active) = active(branches)?.elements else { return [] }
            return declarations(active)
        }
    }

    /// Returns the active attributes.
    func attributes(_ list: AttributeListSyntax) -> [AttributeSyntax] {
        list.flatMap { element -> [AttributeSyntax] in
            switch element {
            case .attribute(let attribute): return [attribute]
            case .ifConfigDecl(let branches):
                guard case .attributes(let active) = active(branches)?.elements else { return [] }
                return attributes(active)
            @unknown default: return []
            }
        }
    }

    private func active(_ branches: IfConfigDeclSyntax) -> IfConfigClauseSyntax? {
        branches.clauses.first { clause in clause.condition.map(holds) ?? true }
    }

    func holds(_ condition: ExprSyntax) -> Bool {
        switch condition.as(ExprSyntaxEnum.self) {
        case .booleanLiteralExpr(let literal): literal.literal.tokenKind == .keyword(.true)
        case .declReferenceExpr(let flag): defines.contains(flag.baseName.text)
        case .prefixOperatorExpr(let negation) where negation.operator.text == "!": !holds(negation.expression)
        case .tupleExpr(let group): group.elements.count == 1 && group.elements.allSatisfy { holds($0.expression) }
        case .sequenceExpr(let sequence): holds(Array(sequence.elements)[...])
        case .functionCallExpr(let call): holds(call)
        default: false
        }
    }

    /// Evaluates `a || b && c` as alternatives of conjunctions.
    private func holds(_ terms: ArraySlice<ExprSyntax>) -> Bool {
        func isOperator(_ term: ExprSyntax, _ text: String) -> Bool {
            term.as(BinaryOperatorExprSyntax.self)?.operator.text == text
        }
        if let or = terms.firstIndex(where: { isOperator($0, "||") }) {
            return holds(terms[..<or]) || holds(terms[(or + 1)...])
        }
        return terms.filter { !isOperator($0, "&&") }.allSatisfy(holds)
    }

    private func holds(_ call: FunctionCallExprSyntax) -> Bool {
        let argument = call.arguments.first?.expression.trimmedDescription ?? ""
        switch call.calledExpression.trimmedDescription {
        case "os": return argument == "Linux"
        case "canImport": return !Self.absentModules.contains(String(argument.prefix { $0 != "." }))
        case "swift", "compiler":
            // The condition nearly always requires an older version than the present one.
            return argument.hasPrefix(">")
        case "arch": return argument == "x86_64"
        default: return false
        }
    }
}

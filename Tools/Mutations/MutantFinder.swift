import SwiftOperators
import SwiftParser
import SwiftSyntax

/// Finds the possible mutants of a source file.
///
/// Not mutated: bodies that are compiled into other modules, attributes and macro input, patterns, default arguments, `#if`, message
/// texts, pure optimizations (`reserveCapacity`), and the program's own assertions.
public enum MutantFinder {
    public static func mutants(in source: String, file: String) -> [Mutant] {
        let parsed = Parser.parse(source: source)
        let tree = OperatorTable.standardOperators.foldAll(parsed) { _ in }
        let visitor = MutantVisitor(file: file, source: source)
        visitor.walk(tree)
        return visitor.mutants
    }

    static let turned = [
        "<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "==", "===": "!==", "!==": "===", "&&": "||",
        "||": "&&",
    ]
    static let moved = ["<": "<=", "<=": "<", ">": ">=", ">=": ">"]
    /// Calls that are neither removed nor mutated inside.
    static let ignoredCalls: Set<String> = [
        "fatalError", "precondition", "preconditionFailure", "assert", "assertionFailure", "reserveCapacity", "print",
        "debugPrint", "withKnownIssue", "init",
    ]
    /// Calls that return their closure's result: as a single expression they may be the value of a function.
    static let valueFunctions: Set<String> = [
        "map", "flatMap", "compactMap", "allSatisfy", "contains", "reduce", "filter",
    ]
    static let ignoredLabels: Set<String> = ["capacity", "minimumCapacity", "initialCapacity", "reservingCapacity"]
    /// Attributes of bodies that other modules compile too.
    static let openAttributes: Set<String> = ["inlinable", "_transparent", "_alwaysEmitIntoClient", "inline"]
}

/// Visits a tree with folded operators; its positions are those of the source.
private final class MutantVisitor: SyntaxVisitor {
    var mutants: [Mutant] = []
    private let file: String
    private let lineStarts: [Int]
    private let bytes: [UInt8]
    private var names: [String] = []
    private var seen: [String: Int] = [:]

    init(file: String, source: String) {
        self.file = file
        let bytes = Array(source.utf8)
        self.bytes = bytes
        lineStarts = [0] + bytes.indices.filter { bytes[$0] == UInt8(ascii: "\n") }.map { $0 + 1 }
        super.init(viewMode: .sourceAccurate)
    }

    // MARK: - Context

    private func enter(_ name: String, _ attributes: AttributeListSyntax) -> SyntaxVisitorContinueKind {
        names.append(name)
        return isOpen(attributes) ? .skipChildren : .visitChildren
    }

    private func isOpen(_ attributes: AttributeListSyntax) -> Bool {
        attributes.contains { element in
            guard case .attribute(let attribute) = element else { return true }
            return MutantFinder.openAttributes.contains(attribute.attributeName.trimmedDescription)
                && attribute.arguments?.trimmedDescription != "never"
        }
    }

    override func visit(_ node: FunctionDeclSyntax) -> SyntaxVisitorContinueKind {
        enter(node.name.text, node.attributes)
    }
    override func visitPost(_ node: FunctionDeclSyntax) { names.removeLast() }
    override func visit(_ node: InitializerDeclSyntax) -> SyntaxVisitorContinueKind { enter("init", node.attributes) }
    override func visitPost(_ node: InitializerDeclSyntax) { names.removeLast() }
    override func visit(_ node: DeinitializerDeclSyntax) -> SyntaxVisitorContinueKind {
        enter("deinit", node.attributes)
    }
    override func visitPost(_ node: DeinitializerDeclSyntax) { names.removeLast() }
    override func visit(_ node: SubscriptDeclSyntax) -> SyntaxVisitorContinueKind {
        enter("subscript", node.attributes)
    }
    override func visitPost(_ node: SubscriptDeclSyntax) { names.removeLast() }
    override func visit(_ node: VariableDeclSyntax) -> SyntaxVisitorContinueKind {
        let name = node.bindings.first?.pattern.trimmedDescription ?? "_"
        let isMember = node.parent?.is(MemberBlockItemSyntax.self) == true || names.isEmpty
        names.append(isMember ? name : "")
        // Wrappers and macros read the initial value.
        let isPlain = node.attributes.allSatisfy {
            $0.as(AttributeSyntax.self)?.attributeName.trimmedDescription == "exclusivity"
        }
        return isPlain ? .visitChildren : .skipChildren
    }
    override func visitPost(_ node: VariableDeclSyntax) { names.removeLast() }
    override func visit(_ node: AccessorDeclSyntax) -> SyntaxVisitorContinueKind {
        isOpen(node.attributes) ? .skipChildren : .visitChildren
    }
    override func visit(_ node: StructDeclSyntax) -> SyntaxVisitorContinueKind { enter(node.name.text, []) }
    override func visitPost(_ node: StructDeclSyntax) { names.removeLast() }
    override func visit(_ node: ClassDeclSyntax) -> SyntaxVisitorContinueKind { enter(node.name.text, []) }
    override func visitPost(_ node: ClassDeclSyntax) { names.removeLast() }
    override func visit(_ node: EnumDeclSyntax) -> SyntaxVisitorContinueKind { enter(node.name.text, []) }
    override func visitPost(_ node: EnumDeclSyntax) { names.removeLast() }
    override func visit(_ node: ActorDeclSyntax) -> SyntaxVisitorContinueKind { enter(node.name.text, []) }
    override func visitPost(_ node: ActorDeclSyntax) { names.removeLast() }
    override func visit(_ node: ProtocolDeclSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
    override func visit(_ node: ExtensionDeclSyntax) -> SyntaxVisitorContinueKind {
        enter(node.extendedType.trimmedDescription, [])
    }
    override func visitPost(_ node: ExtensionDeclSyntax) { names.removeLast() }

    override func visit(_ node: AttributeSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
    override func visit(_ node: IfConfigDeclSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
    override func visit(_ node: EnumCaseDeclSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
    override func visit(_ node: MacroExpansionExprSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
    override func visit(_ node: MacroExpansionDeclSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
    override func visit(_ node: FunctionParameterClauseSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
    override func visit(_ node: GenericArgumentClauseSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
    override func visit(_ node: SwitchCaseLabelSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
    override func visit(_ node: ExpressionPatternSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
    override func visit(_ node: StringLiteralExprSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
    override func visit(_ node: LabeledExprSyntax) -> SyntaxVisitorContinueKind {
        MutantFinder.ignoredLabels.contains(node.label?.text ?? "") ? .skipChildren : .visitChildren
    }

    // MARK: - Mutations

    override func visit(_ node: InfixOperatorExprSyntax) -> SyntaxVisitorContinueKind {
        guard let binary = node.operator.as(BinaryOperatorExprSyntax.self) else { return .visitChildren }
        let sign = binary.operator.text
        let (left, right) = (range(node.leftOperand), range(node.rightOperand))
        for (kind, table) in [(Mutant.Kind.turned, MutantFinder.turned), (.moved, MutantFinder.moved)] {
            guard let other = table[sign] else { continue }
            add(
                kind, at: range(node), change: range(binary), other,
                [
                    .text("(\(Mutant.switchMark) ? ("), .source(left), .text(" \(other) "), .source(right),
                    .text(") : ("),
                    .source(left), .text(" \(sign) "), .source(right), .text("))"),
                ])
        }
        return .visitChildren
    }

    override func visit(_ node: GuardStmtSyntax) -> SyntaxVisitorContinueKind {
        let conditions = node.conditions.map { ($0, $0.condition.as(ExprSyntax.self)) }
        if conditions.allSatisfy({ $0.1 != nil }) {
            var pieces: [Mutant.Piece] = []
            var position = range(node).lowerBound
            for case (_, let condition?) in conditions {
                pieces += [
                    .source(position..<range(condition).lowerBound), .text("(\(Mutant.switchMark) ? true : ("),
                    .source(range(condition)), .text("))"),
                ]
                position = range(condition).upperBound
            }
            pieces.append(.source(position..<range(node).upperBound))
            add(.unguarded, at: range(node), change: range(node), "", pieces)
        } else {
            for case (_, let condition?) in conditions {
                dropCondition(condition, true)
            }
        }
        return .visitChildren
    }

    private func dropCondition(_ condition: ExprSyntax, _ constant: Bool) {
        let place = range(condition)
        add(
            .unguarded, at: place, change: place, "\(constant)",
            [.text("(\(Mutant.switchMark) ? \(constant) : ("), .source(place), .text("))")])
    }

    override func visit(_ node: IfExprSyntax) -> SyntaxVisitorContinueKind {
        if node.conditions.count == 1, let condition = node.conditions.first?.condition.as(ExprSyntax.self) {
            invert(condition)
        } else {
            for element in node.conditions {
                if let condition = element.condition.as(ExprSyntax.self) { dropCondition(condition, true) }
            }
        }
        return .visitChildren
    }

    override func visit(_ node: TernaryExprSyntax) -> SyntaxVisitorContinueKind {
        invert(node.condition)
        return .visitChildren
    }

    private func invert(_ condition: ExprSyntax) {
        // A negated comparison is the same mutant.
        if let infix = condition.as(InfixOperatorExprSyntax.self),
            let sign = infix.operator.as(BinaryOperatorExprSyntax.self)?.operator.text,
            MutantFinder.turned[sign] != nil, sign != "&&", sign != "||"
        {
            return
        }
        let place = range(condition)
        let text = self.text(place)
        let plain =
            if let prefix = condition.as(PrefixOperatorExprSyntax.self), prefix.operator.text == "!" {
                self.text(range(prefix.expression))
            } else if condition.is(InfixOperatorExprSyntax.self) || text.contains(" ") {
                "!(\(text))"
            } else {
                "!\(text)"
            }
        add(
            .swapped, at: place, change: place, plain,
            [
                .text("(\(Mutant.switchMark) ? !("), .source(place), .text(") : ("), .source(place), .text("))"),
            ])
    }

    override func visit(_ node: CodeBlockItemSyntax) -> SyntaxVisitorContinueKind {
        guard case .expr(let expression) = node.item, let name = Self.calledName(expression) else {
            return .visitChildren
        }
        if MutantFinder.ignoredCalls.contains(name) { return .skipChildren }
        if case .expr = node.item, isStatement(node) {
            let place = range(expression)
            add(
                .uncalled, at: place, change: place, "",
                [.text("if !\(Mutant.switchMark) { "), .source(place), .text(" }")])
        }
        return .visitChildren
    }

    /// False for a single expression that is the value of a function, an accessor or a closure with a used result.
    private func isStatement(_ node: CodeBlockItemSyntax) -> Bool {
        guard let list = node.parent?.as(CodeBlockItemListSyntax.self), list.count == 1 else { return true }
        if list.parent?.is(AccessorBlockSyntax.self) == true { return false }
        if let closure = list.parent?.as(ClosureExprSyntax.self) {
            // The value of a call that is a statement is unused.
            var call: Syntax? = closure.parent
            while let part = call, !part.is(FunctionCallExprSyntax.self) {
                guard part.is(LabeledExprSyntax.self) || part.is(LabeledExprListSyntax.self) else { return false }
                call = part.parent
            }
            var outer = call?.parent
            while let part = outer, part.is(TryExprSyntax.self) || part.is(AwaitExprSyntax.self) { outer = part.parent }
            return outer?.is(CodeBlockItemSyntax.self) == true
                && !MutantFinder.valueFunctions.contains(
                    call?.as(FunctionCallExprSyntax.self).flatMap { Self.calledName(ExprSyntax($0)) } ?? "")
        }
        guard let owner = list.parent?.as(CodeBlockSyntax.self)?.parent else { return true }
        if let function = owner.as(FunctionDeclSyntax.self) { return function.signature.returnClause == nil }
        if let accessor = owner.as(AccessorDeclSyntax.self) { return accessor.accessorSpecifier.text != "get" }
        return true
    }

    /// The last name of the callee, if the expression is a call with an unused result.
    private static func calledName(_ expression: ExprSyntax) -> String? {
        if let attempt = expression.as(TryExprSyntax.self) { return calledName(attempt.expression) }
        if let wait = expression.as(AwaitExprSyntax.self) { return calledName(wait.expression) }
        if let infix = expression.as(InfixOperatorExprSyntax.self), infix.operator.is(AssignmentExprSyntax.self),
            infix.leftOperand.is(DiscardAssignmentExprSyntax.self)
        {
            return calledName(infix.rightOperand)
        }
        guard let call = expression.as(FunctionCallExprSyntax.self) else { return nil }
        if let member = call.calledExpression.as(MemberAccessExprSyntax.self) {
            return member.declName.baseName.text
        }
        return call.calledExpression.as(DeclReferenceExprSyntax.self)?.baseName.text ?? ""
    }

    override func visit(_ node: FunctionCallExprSyntax) -> SyntaxVisitorContinueKind {
        MutantFinder.ignoredCalls.subtracting(["init"]).contains(Self.calledName(ExprSyntax(node)) ?? "")
            ? .skipChildren : .visitChildren
    }

    override func visit(_ node: IntegerLiteralExprSyntax) -> SyntaxVisitorContinueKind {
        let digits = node.literal.text
        let (radix, body) =
            digits.hasPrefix("0x")
            ? (16, digits.dropFirst(2)) : digits.hasPrefix("0b") ? (2, digits.dropFirst(2)) : (10, digits[...])
        guard let value = UInt64(body.filter { $0 != "_" }, radix: radix) else { return .skipChildren }
        // A larger mask of ones might not fit its type.
        let isMask = value > 2 && (value & (value &+ 1)) == 0
        let other = isMask ? value - 1 : value + 1
        let prefix = radix == 16 ? "0x" : radix == 2 ? "0b" : ""
        changeConstant(Syntax(node), prefix + String(other, radix: radix))
        return .skipChildren
    }

    override func visit(_ node: FloatLiteralExprSyntax) -> SyntaxVisitorContinueKind {
        guard let value = Double(node.literal.text) else { return .skipChildren }
        changeConstant(Syntax(node), String(value + 1))
        return .skipChildren
    }

    override func visit(_ node: BooleanLiteralExprSyntax) -> SyntaxVisitorContinueKind {
        changeConstant(Syntax(node), node.literal.text == "true" ? "false" : "true")
        return .skipChildren
    }

    private func changeConstant(_ node: Syntax, _ other: String) {
        let place = range(node)
        add(
            .constant, at: place, change: place, other,
            [.text("(\(Mutant.switchMark) ? \(other) : \(text(place)))")])
    }

    // MARK: - Recording mutants

    private func range(_ node: some SyntaxProtocol) -> Range<Int> {
        node.positionAfterSkippingLeadingTrivia.utf8Offset..<node.endPositionBeforeTrailingTrivia.utf8Offset
    }

    private func text(_ range: Range<Int>) -> String {
        String(decoding: bytes[range], as: UTF8.self)
    }

    private func add(
        _ kind: Mutant.Kind, at place: Range<Int>, change: Range<Int>, _ replacement: String, _ pieces: [Mutant.Piece]
    ) {
        let function = names.filter { !$0.isEmpty }.joined(separator: ".")
        let key = "\(kind) \(function) \(text(change)) \(replacement)"
        let occurrence = seen[key, default: 0]
        seen[key] = occurrence + 1
        let line = lineStarts.partitioningIndex { $0 > change.lowerBound }
        mutants.append(
            Mutant(
                kind: kind, file: file, function: function, line: line, change: change, replacement: replacement,
                range: place, pieces: pieces, occurrence: occurrence))
    }
}

extension [Int] {
    /// The first index whose element belongs to the second part.
    fileprivate func partitioningIndex(_ belongs: (Int) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if belongs(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}

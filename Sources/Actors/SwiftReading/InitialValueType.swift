package import SwiftSyntax
internal import SwiftSyntaxBuilder

/// The type of an initial value, as far as it follows from the syntax.
package enum InitialValueType {
    case known(TypeSyntax)
    /// The probable type: suitable for a proposal, not for generated code.
    case guess(TypeSyntax)
    case unknown

    package init(of value: ExprSyntax) {
        switch value.as(ExprSyntaxEnum.self) {
        case .integerLiteralExpr: self = .known("Int")
        case .floatLiteralExpr: self = .known("Double")
        case .stringLiteralExpr: self = .known("String")
        case .booleanLiteralExpr: self = .known("Bool")
        case .prefixOperatorExpr(let prefixed) where ["-", "+"].contains(prefixed.operator.text):
            self = Self.number(InitialValueType(of: prefixed.expression))
        case .asExpr(let cast) where cast.questionOrExclamationMark == nil:
            self = .known(cast.type.trimmed)
        // Before operators are folded, `x as T` is a sequence of three elements.
        case .sequenceExpr(let sequence): self = Self.cast(in: sequence)
        case .tupleExpr(let tuple) where tuple.elements.count == 1 && tuple.elements.first?.label == nil:
            self = tuple.elements.first.map { InitialValueType(of: $0.expression) } ?? .unknown
        case .functionCallExpr(let call): self = Self.call(call)
        case .memberAccessExpr(let member):
            // `Mode.idle` is usually a `Mode`, but not necessarily.
            self = member.base.flatMap(Self.type(named:)).map(Self.guess) ?? .unknown
        default: self = .unknown
        }
    }

    private static func number(_ literal: Self) -> Self {
        guard case .known(let type) = literal, ["Int", "Double"].contains(type.description) else { return .unknown }
        return literal
    }

    private static func cast(in sequence: SequenceExprSyntax) -> Self {
        let elements = Array(sequence.elements)
        guard elements.count == 3, let cast = elements[1].as(UnresolvedAsExprSyntax.self),
            cast.questionOrExclamationMark == nil, let type = elements[2].as(TypeExprSyntax.self)
        else { return .unknown }
        return .known(type.type.trimmed)
    }

    private static func call(_ call: FunctionCallExprSyntax) -> Self {
        let callee = call.calledExpression
        if let type = type(named: callee) { return .known(type) }
        guard let member = callee.as(MemberAccessExprSyntax.self), let base = member.base.flatMap(type(named:)) else {
            return .unknown
        }
        return member.declName.baseName.text == "init" ? .known(base) : .guess(base)
    }

    /// Returns the type named by `expression`, if it is a type: `State`, `Foo.Bar`, `Box<Int>`, `[String]`, `[String:
    /// Int]`.
    private static func type(named expression: ExprSyntax) -> TypeSyntax? {
        namesType(expression) ? "\(raw: expression.trimmedDescription)" : nil
    }

    /// Returns true if `expression` names a type. A name counts as a type if it begins with a capital letter.
    private static func namesType(_ expression: ExprSyntax) -> Bool {
        switch expression.as(ExprSyntaxEnum.self) {
        case .declReferenceExpr(let name):
            name.argumentNames == nil && name.baseName.plainText.first?.isUppercase == true
        case .memberAccessExpr(let member):
            namesType(ExprSyntax(member.declName)) && member.base.map(namesType) == true
        case .genericSpecializationExpr(let generic): namesType(generic.expression)
        case .optionalChainingExpr(let optional): namesType(optional.expression)
        case .arrayExpr(let array): array.elements.count == 1 && array.elements.allSatisfy { namesType($0.expression) }
        case .dictionaryExpr(let dictionary):
            if case .elements(let elements) = dictionary.content {
                elements.count == 1 && elements.allSatisfy { namesType($0.key) && namesType($0.value) }
            } else {
                false
            }
        default: false
        }
    }
}

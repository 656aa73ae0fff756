internal import SwiftParser
internal import SwiftReading
internal import SwiftSyntax

/// Reads types that are represented by their raw values.
extension ModelBuilder {
    /// Returns the raw values of an enum with a raw type; nil for others.
    func rawCases(of type: DeclaredType) -> [(name: String, value: ClientModel.RawValue)]? {
        guard let first = type.node.as(EnumDeclSyntax.self)?.inheritanceClause?.inheritedTypes.first?.type,
            let raw = rawType(first, of: type)
        else { return nil }
        let elements = elements(of: type)
        if elements.isEmpty {
            problems.error(type.location, "'\(type.qualifiedName)' has no cases and therefore no value to send")
        }
        var next = 0
        return elements.compactMap { element in
            let name = element.name.plainText
            guard let written = element.rawValue?.value else {
                defer { next += 1 }
                return (name, raw == .string ? .string(name) : .number("\(next)"))
            }
            if raw == .string, let text = written.as(StringLiteralExprSyntax.self)?.representedLiteralValue {
                return (name, .string(text))
            }
            if case .number(let text)? = Self.number(written) {
                if let whole = Int(text) {
                    next = whole &+ 1
                    if whole.magnitude > 1 << 53 {
                        problems.error(
                            type.file.location(of: written),
                            "JavaScript cannot represent this integer: the raw value of a case must not exceed 2^53")
                    }
                }
                return (name, .number(text))
            }
            problems.error(type.file.location(of: written), "the raw value cannot be determined")
            return nil
        }
    }

    /// Returns the type of an enum's raw values; nil if the first inherited type is a protocol.
    private func rawType(_ first: TypeSyntax, of type: DeclaredType) -> WireType? {
        let names = DeclarationIndex.path(first)
        if let last = names.last, names.count == 1 || Self.systemModules.contains(names[0]) {
            if last == "String" { return .string }
            if Self.rawNumbers.contains(last) { return .number(last) }
        }
        guard names.count == 1 else { return nil }
        let nested = type.parent?.nested[names[0]]
        var found: DeclaredType? = nested
        if found == nil, case .type(let top) = index.find(names[0], from: type.file, elsewhere: true) { found = top }
        guard let alias = found, let target = alias.node.as(TypeAliasDeclSyntax.self)?.initializer.value,
            target.is(IdentifierTypeSyntax.self), alias.id != type.id
        else { return nil }
        return openAliases.insert(alias.id).inserted
            ? {
                defer { openAliases.remove(alias.id) }; return rawType(target, of: alias)
            }() : nil
    }

    private static let rawNumbers: Set<String> = [
        "Int", "Int8", "Int16", "Int32", "Int64", "UInt", "UInt8", "UInt16", "UInt32", "UInt64", "Double", "Float",
    ]

    private static func number(_ value: ExprSyntax) -> ClientModel.RawValue? {
        if let negated = value.as(PrefixOperatorExprSyntax.self), negated.operator.text == "-" {
            guard case .number(let text)? = number(negated.expression) else { return nil }
            return .number("-" + text)
        }
        if let whole = value.as(IntegerLiteralExprSyntax.self) {
            return whole.representedLiteralValue.map { .number("\($0)") }
        }
        guard let number = value.as(FloatLiteralExprSyntax.self)?.representedLiteralValue else { return nil }
        return .number(Int(exactly: number).map { "\($0)" } ?? "\(number)")
    }

    /// Returns the type of the raw value of a `RawRepresentable` struct or enum.
    func rawValueType(of type: DeclaredType, _ bindings: [String: WireType]?) -> WireType? {
        if type.kind == .enumeration,
            let first = type.node.as(EnumDeclSyntax.self)?.inheritanceClause?.inheritedTypes.first?.type,
            let raw = rawType(first, of: type)
        {
            return raw
        }
        let comments = directives(type.comments, at: type.location)
        for (member, file) in type.allMembers {
            var written: TypeSyntax?
            if let variable = member.as(VariableDeclSyntax.self) {
                written =
                    variable.bindings.first {
                        $0.pattern.as(IdentifierPatternSyntax.self)?.identifier.plainText == "rawValue"
                    }?.typeAnnotation?.type
            } else if let initializer = member.as(InitializerDeclSyntax.self),
                let parameter = initializer.signature.parameterClause.parameters.first,
                parameter.firstName.plainText == "rawValue"
            {
                written = parameter.type
            } else if let alias = member.as(TypeAliasDeclSyntax.self), alias.name.text == "RawValue" {
                written = alias.initializer.value
            }
            if let written {
                let scope = Scope(file, in: type, bindings: bindings, integers: integers(comments, else: integers))
                return read(written, scope)
            }
        }
        return nil
    }
}

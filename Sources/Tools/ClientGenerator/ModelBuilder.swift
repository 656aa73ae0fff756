internal import SwiftParser
internal import SwiftReading
internal import SwiftSyntax

/// Reads actors and the types that they use.
///
/// It continues after an error, so that one run reports all errors.
final class ModelBuilder {
    /// The representation of `Int64` and `UInt64`.
    enum Integers {
        /// `number`, with a warning.
        case unspecified
        case number, bigint
    }

    /// The context of a written type.
    struct Scope {
        let file: SourceFile
        /// The enclosing type.
        let type: DeclaredType?
        /// The values of generic parameters.
        var bindings: [String: WireType]
        var integers: Integers
        /// The location for diagnostics about a type that is inferred from a value.
        var fallback: SourcePosition?

        func location(of node: some SyntaxProtocol) -> SourcePosition {
            if let fallback, node.root.id != file.tree.id { return fallback }
            return file.location(of: node)
        }

        init(_ file: SourceFile, in type: DeclaredType?, bindings: [String: WireType]? = nil, integers: Integers) {
            (self.file, self.type, self.integers) = (file, type, integers)
            let own = type?.kind == .alias ? [] : type?.genericParameters ?? []
            self.bindings = bindings ?? Dictionary(own.map { ($0, .parameter($0)) }) { first, _ in first }
        }
    }

    let index: DeclarationIndex
    let problems: DiagnosticList
    let integers: Integers
    /// True if the model includes private streams that are persisted.
    let includesPrivateStreams: Bool
    var model = ClientModel()
    /// The aliases being read, to detect cycles.
    var openAliases: Set<Int> = []

    init(_ index: DeclarationIndex, problems: DiagnosticList, usesBigint: Bool, includesPrivateStreams: Bool) {
        self.index = index
        self.problems = problems
        integers = usesBigint ? .bigint : .unspecified
        self.includesPrivateStreams = includesPrivateStreams
    }

    func build() -> ClientModel {
        for type in index.types { readActor(type) }
        model.actors.sort { ($0.name, $0.location) < ($1.name, $1.location) }
        reportCollisions()
        return model
    }

    // MARK: Comments

    func documentation(_ type: DeclaredType) -> ClientModel.Documentation {
        documentation(type.comments, type.attributes)
    }

    func documentation(_ comments: Comments, _ attributes: AttributeListSyntax) -> ClientModel.Documentation {
        documentation(comments, index.conditions.attributes(attributes))
    }

    private func documentation(_ comments: Comments, _ attributes: [AttributeSyntax]) -> ClientModel.Documentation {
        ClientModel.Documentation(
            lines: comments.documentation, deprecation: attributes.lazy.compactMap(\.deprecation).first)
    }

    func directives(_ comments: Comments, at location: SourcePosition) -> [Directive] {
        comments.directives.compactMap { text in
            if let directive = Directive(text) { return directive }
            problems.error(location, "unknown directive '// trebuchet: \(text)'; known are \(Directive.known)")
            return nil
        }
    }

    func customTypeName(_ directives: [Directive]) -> String? {
        for case .typeScript(let type) in directives { return type }
        return nil
    }

    func integers(_ directives: [Directive], else outer: Integers) -> Integers {
        if directives.contains(.bigint) { return .bigint }
        return directives.contains(.number) ? .number : outer
    }

    // MARK: Names

    /// Returns the name of a type in TypeScript: `TodoListState` for `TodoList.State`.
    func typeScriptName(of type: DeclaredType) -> String {
        for case .name(let name) in directives(type.comments, at: type.location) { return name }
        let name = type.qualifiedName.split(separator: ".").joined()
        if !TypeScriptText.isIdentifier(name) {
            problems.error(
                type.location,
                "'\(type.qualifiedName)' is not a TypeScript name; write '// trebuchet: name = Other' above its declaration"
            )
        }
        return TypeScriptText.isTaken(name) ? name + "_" : name
    }

    private func reportCollisions() {
        var locations: [String: (location: SourcePosition, swiftName: String)] = [:]
        func recordName(_ name: String, _ swiftName: String, _ location: SourcePosition) {
            if let other = locations[name] {
                problems.error(
                    location,
                    "'\(swiftName)' and '\(other.swiftName)' (\(other.location)) both have the TypeScript name '\(name)'; "
                        + "write '// trebuchet: name = Other' above one of them, or pass fewer folders")
            } else {
                locations[name] = (location, swiftName)
            }
        }
        let types = model.definitions.map { (index.types[$0.key], $0.value) }.sorted { $0.0.location < $1.0.location }
        for (type, definition) in types { recordName(definition.name, definition.swiftName, type.location) }
        for actor in model.actors { recordName(actor.name, actor.swiftName, actor.location) }
        let references = UsedTypes(model).references
        for name in references.sorted() {
            guard let type = index.types.first(where: { $0.qualifiedName == name }) else { continue }
            recordName(TypeScriptWriter.referenceName(name), "the name of an actor \(name)", type.location)
        }
    }
}

extension DeclModifierListSyntax {
    /// True for `private` or `fileprivate`, but not for `private(set)`.
    var isFilePrivate: Bool {
        contains { $0.detail == nil && [.keyword(.private), .keyword(.fileprivate)].contains($0.name.tokenKind) }
    }
}

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

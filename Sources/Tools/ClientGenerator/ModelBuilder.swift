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
    var model = ClientModel()
    /// The aliases being read, to detect cycles.
    var openAliases: Set<Int> = []

    init(_ index: DeclarationIndex, problems: DiagnosticList, usesBigint: Bool) {
        self.index = index
        self.problems = problems
        integers = usesBigint ? .bigint : .unspecified
    }

    func build() -> ClientModel {
        for type in index.types { readActor(type) }
        model.actors.sort { ($0.name, $0.location) < ($1.name, $1.location) }
        reportCollisions()
        return model
    }

    // MARK: Comments

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

internal import SwiftReading
internal import SwiftSyntax

/// Reads actors and the types that they use.
///
/// It continues after an error, so that one run reports all errors.
final class ModelBuilder {
    /// The representation of `Int64` and `UInt64`.
    enum Integers {
        /// `number`, with a warning.
        case unsaid
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

        func place(of node: some SyntaxProtocol) -> SourcePosition {
            if let fallback, node.root.id != file.tree.id { return fallback }
            return file.place(of: node)
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
        integers = usesBigint ? .bigint : .unsaid
    }

    func build() -> ClientModel {
        for type in index.types { readActor(type) }
        model.actors.sort { ($0.name, $0.place) < ($1.name, $1.place) }
        tellCollisions()
        return model
    }

    // MARK: Comments

    func directives(_ comments: Comments, at place: SourcePosition) -> [Directive] {
        comments.told.compactMap { text in
            if let directive = Directive(text) { return directive }
            problems.error(place, "unknown directive '// trebuchet: \(text)'; known are \(Directive.known)")
            return nil
        }
    }

    func spokenTypeName(_ directives: [Directive]) -> String? {
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
        for case .name(let name) in directives(type.comments, at: type.place) { return name }
        let name = type.qualifiedName.split(separator: ".").joined()
        if !TypeScriptText.isIdentifier(name) {
            problems.error(
                type.place,
                "'\(type.qualifiedName)' is not a TypeScript name; write '// trebuchet: name = Other' above its declaration"
            )
        }
        return TypeScriptText.isTaken(name) ? name + "_" : name
    }

    private func tellCollisions() {
        var places: [String: (place: SourcePosition, swiftName: String)] = [:]
        func note(_ name: String, _ swiftName: String, _ place: SourcePosition) {
            if let other = places[name] {
                problems.error(
                    place,
                    "'\(swiftName)' and '\(other.swiftName)' (\(other.place)) both have the TypeScript name '\(name)'; "
                        + "write '// trebuchet: name = Other' above one of them, or pass fewer folders")
            } else {
                places[name] = (place, swiftName)
            }
        }
        let types = model.definitions.map { (index.types[$0.key], $0.value) }.sorted { $0.0.place < $1.0.place }
        for (type, definition) in types { note(definition.name, definition.swiftName, type.place) }
        for actor in model.actors { note(actor.name, actor.swiftName, actor.place) }
        let references = UsedTypes(model).references
        for name in references.sorted() {
            guard let type = index.types.first(where: { $0.qualifiedName == name }) else { continue }
            note(TypeScriptWriter.referenceName(name), "the name of an actor \(name)", type.place)
        }
    }
}

extension DeclModifierListSyntax {
    /// True for `private` or `fileprivate`, but not for `private(set)`.
    var isFilePrivate: Bool {
        contains { $0.detail == nil && [.keyword(.private), .keyword(.fileprivate)].contains($0.name.tokenKind) }
    }
}

internal import SwiftReading
internal import SwiftSyntax

/// All types that the sources declare, by their names.
struct DeclarationIndex {
    private(set) var types: [DeclaredType] = []
    /// Types at the top level of a module, or private to a file.
    private var topLevel: [String: [DeclaredType]] = [:]
    /// Extensions of types that the sources do not declare.
    private(set) var foreignExtensions: [String: [(node: ExtensionDeclSyntax, file: SourceFile)]] = [:]
    private let modules: Set<String>
    let conditions: BuildConditions

    init(_ files: [SourceFile], conditions: BuildConditions) {
        self.conditions = conditions
        modules = Set(files.map(\.module))
        var extensions: [(ExtensionDeclSyntax, SourceFile)] = []
        for file in files {
            for declaration in conditions.declarations(file.tree.statements) {
                if let node = declaration.as(ExtensionDeclSyntax.self) {
                    extensions.append((node, file))
                } else if let type = insertType(declaration, in: file, parent: nil) {
                    topLevel[type.name, default: []].append(type)
                }
            }
        }
        attach(extensions)
    }

    /// Attaches extensions to their types. Repeats while it finds types, because extensions may extend types that
    /// other extensions declare.
    private mutating func attach(_ extensions: [(ExtensionDeclSyntax, SourceFile)]) {
        var waiting = extensions
        while !waiting.isEmpty {
            var left: [(ExtensionDeclSyntax, SourceFile)] = []
            for (node, file) in waiting {
                guard let type = type(path: Self.path(node.extendedType), from: file) else {
                    left.append((node, file))
                    continue
                }
                let members = conditions.members(node.memberBlock.members)
                type.insertExtension(node, in: file, members: members)
                for member in members { nest(member, in: file, parent: type) }
            }
            guard left.count < waiting.count else {
                for (node, file) in left {
                    foreignExtensions[Self.path(node.extendedType).last ?? "", default: []].append((node, file))
                }
                return
            }
            waiting = left
        }
    }

    private mutating func insertType(_ node: DeclSyntax, in file: SourceFile, parent: DeclaredType?) -> DeclaredType? {
        let declared = DeclaredType(node, in: file, parent: parent, id: types.count, conditions: conditions)
        guard let type = declared else { return nil }
        types.append(type)
        for member in type.members { nest(member, in: file, parent: type) }
        return type
    }

    private mutating func nest(_ node: DeclSyntax, in file: SourceFile, parent: DeclaredType) {
        if let type = insertType(node, in: file, parent: parent) { parent.nested[type.name] = type }
    }

    /// Returns the names of `A.B<C>`: A, B.
    static func path(_ type: TypeSyntax) -> [String] {
        switch type.as(TypeSyntaxEnum.self) {
        case .memberType(let member): path(member.baseType) + [member.name.plainText]
        case .identifierType(let identifier): [identifier.name.plainText]
        case .attributedType(let attributed): path(attributed.baseType)
        default: []
        }
    }

    // MARK: Finding

    /// The result of a lookup by name.
    enum LookupResult {
        case type(DeclaredType)
        case several([DeclaredType])
        case none
    }

    /// Finds a top-level type as visible from a file. Its own types come first, then those of its module, then those
    /// of imported modules, then any.
    ///
    /// - Parameter elsewhere: whether modules count that the file does not import.
    func find(_ name: String, from file: SourceFile, elsewhere: Bool) -> LookupResult {
        let all = (topLevel[name] ?? []).filter { !$0.isFilePrivate || $0.file.path == file.path }
        let scopes: [(DeclaredType) -> Bool] = [
            { $0.isFilePrivate }, { $0.file.module == file.module }, { file.imports.contains($0.file.module) },
            { _ in elsewhere },
        ]
        for scope in scopes {
            let found = all.filter(scope)
            if found.count == 1 { return .type(found[0]) }
            if found.count > 1 { return .several(found) }
        }
        return .none
    }

    func isModule(_ name: String) -> Bool { !name.isEmpty && modules.contains(name) }

    func find(_ name: String, inModule module: String) -> DeclaredType? {
        topLevel[name]?.first { $0.file.module == module && !$0.isFilePrivate }
    }

    /// Returns the extended type of an extension.
    private func type(path: [String], from file: SourceFile) -> DeclaredType? {
        guard let first = path.first else { return nil }
        var remaining = path.dropFirst()
        var type: DeclaredType?
        if case .type(let found) = find(first, from: file, elsewhere: true) {
            type = found
        } else if isModule(first), let second = remaining.popFirst() {
            type = find(second, inModule: first)
        }
        for name in remaining { type = type?.nested[name] }
        return type
    }
}

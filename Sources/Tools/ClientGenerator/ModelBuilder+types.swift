internal import SwiftReading
internal import SwiftSyntax

/// Reads types from their syntax.
extension ModelBuilder {
    func read(_ type: TypeSyntax, _ scope: Scope) -> WireType {
        switch type.as(TypeSyntaxEnum.self) {
        case .attributedType(let attributed): return read(attributed.baseType, scope)
        case .optionalType(let optional): return .optional(read(optional.wrappedType, scope))
        case .implicitlyUnwrappedOptionalType(let optional): return .optional(read(optional.wrappedType, scope))
        case .arrayType(let array): return .array(read(array.element, scope))
        case .dictionaryType(let dictionary):
            return self.dictionary(
                read(dictionary.key, scope), read(dictionary.value, scope), at: scope.location(of: dictionary.key))
        case .tupleType(let tuple):
            if let only = tuple.elements.first, tuple.elements.count == 1 { return read(only.type, scope) }
            return rejectType(type, "a tuple, which is not Codable; use a struct", scope)
        case .identifierType, .memberType: return resolve(type, scope)
        case .someOrAnyType(let some) where some.someOrAnySpecifier.tokenKind == .keyword(.any):
            return rejectType(
                type, "an existential with an unknown JSON form; use an enum with a case for each type",
                scope)
        case .someOrAnyType: return rejectType(type, "an opaque type; name the type", scope)
        case .compositionType: return rejectType(type, "an existential; use an enum with a case for each type", scope)
        case .functionType: return rejectType(type, "a function, which is not Codable", scope)
        case .metatypeType: return rejectType(type, "a metatype, which is not Codable", scope)
        default: return rejectType(type, "an unknown type", scope)
        }
    }

    private func rejectType(_ type: TypeSyntax, _ what: String, _ scope: Scope) -> WireType {
        problems.error(scope.location(of: type), "'\(type.trimmedDescription)' is \(what)")
        return .unknown
    }

    // MARK: Names

    /// One component of a qualified type name, with its generic arguments.
    private struct Component {
        let name: String
        let arguments: [TypeSyntax]
        let node: TypeSyntax
    }

    private func components(_ type: TypeSyntax) -> [Component] {
        func arguments(_ clause: GenericArgumentClauseSyntax?) -> [TypeSyntax] {
            clause?.arguments.compactMap { if case .type(let type) = $0.argument { type } else { nil } } ?? []
        }
        switch type.as(TypeSyntaxEnum.self) {
        case .memberType(let member):
            return components(member.baseType) + [
                Component(name: member.name.plainText, arguments: arguments(member.genericArgumentClause), node: type)
            ]
        case .identifierType(let identifier):
            return [
                Component(
                    name: identifier.name.plainText, arguments: arguments(identifier.genericArgumentClause), node: type)
            ]
        case .attributedType(let attributed): return components(attributed.baseType)
        default: return []
        }
    }

    private func resolve(_ type: TypeSyntax, _ scope: Scope) -> WireType {
        let path = components(type)
        guard let first = path.first else { return rejectType(type, "an unknown type", scope) }
        // The stub of a `@Resolvable` protocol represents any actor that conforms to it.
        if first.name.hasPrefix("$"), path.count == 1,
            case .type(let found) = index.find(String(first.name.dropFirst()), from: scope.file, elsewhere: true),
            found.kind == .protocol
        {
            return .reference(found.qualifiedName)
        }
        if let bound = scope.bindings[first.name] {
            guard path.count > 1 else { return bound }
            guard case .named(let id, let arguments) = bound else {
                return rejectType(type, "a type of a generic parameter; name it with a type alias", scope)
            }
            return resolve(path.dropFirst(), in: index.types[id], arguments, scope)
        }
        if first.name == "Self", let ownType = scope.type {
            return resolve(
                path.dropFirst(), in: ownType, ownType.genericParameters.map { scope.bindings[$0] ?? .unknown }, scope)
        }
        var around = scope.type
        while let type = around {
            if let found = type.nested[first.name] { return resolvePath(path, to: found, scope) }
            around = type.parent
        }
        switch index.find(first.name, from: scope.file, elsewhere: false) {
        case .type(let found): return resolvePath(path, to: found, scope)
        case .several(let found): return ambiguous(type, found, scope)
        case .none: break
        }
        if path.count == 1, let builtInType = builtInType(first, scope) { return builtInType }
        if path.count > 1, Self.systemModules.contains(first.name) || index.isModule(first.name) {
            if let found = index.find(path[1].name, inModule: first.name) {
                return resolvePath(Array(path.dropFirst()), to: found, scope)
            }
            if path.count == 2, let builtInType = builtInType(path[1], scope) { return builtInType }
        }
        switch index.find(first.name, from: scope.file, elsewhere: true) {
        case .type(let found): return resolvePath(path, to: found, scope)
        case .several(let found): return ambiguous(type, found, scope)
        case .none: return externalType(type, path, scope)
        }
    }

    /// Returns the declared type of a name in a scope, without a diagnostic if there is none.
    func declared(_ type: TypeSyntax, _ scope: Scope) -> DeclaredType? {
        let path = DeclarationIndex.path(type)
        guard let first = path.first else { return nil }
        var found: DeclaredType?
        var around = scope.type
        while let type = around, found == nil {
            found = type.nested[first]
            around = type.parent
        }
        if found == nil, case .type(let top) = index.find(first, from: scope.file, elsewhere: true) { found = top }
        for name in path.dropFirst() { found = found?.nested[name] }
        return found
    }

    /// Returns the type of an initial value: as far as it follows from the syntax, or the enum of a case that the
    /// sources declare.
    func type(of value: ExprSyntax, _ scope: Scope) -> TypeSyntax? {
        switch InitialValueType(of: value) {
        case .known(let type): return type
        case .guess(let type):
            let callee = value.as(FunctionCallExprSyntax.self)?.calledExpression ?? value
            guard let name = callee.as(MemberAccessExprSyntax.self)?.declName.baseName.plainText,
                let found = declared(type, scope), elements(of: found).contains(where: { $0.name.plainText == name })
            else { return nil }
            return type
        case .unknown: return nil
        }
    }

    private func ambiguous(_ type: TypeSyntax, _ found: [DeclaredType], _ scope: Scope) -> WireType {
        let locations = found.map { "\($0.location)" }.joined(separator: ", ")
        return rejectType(type, "declared several times (\(locations)); pass the folders of one target", scope)
    }

    /// Resolves a type that the sources do not declare. A comment above an extension of it may define it.
    private func externalType(_ type: TypeSyntax, _ path: [Component], _ scope: Scope) -> WireType {
        for (node, file) in index.foreignExtensions[path.last?.name ?? ""] ?? [] {
            if let custom = customTypeName(directives(Comments(node), at: file.location(of: node))) {
                return .custom(custom)
            }
        }
        let name = type.trimmedDescription
        problems.error(
            scope.location(of: type),
            "'\(name)' is not declared in the given sources; add its folder, or write "
                + "'// trebuchet: TypeScript = …' above the member, or above a type alias or an extension of it")
        return .unknown
    }

    private func resolvePath(_ path: [Component], to found: DeclaredType, _ scope: Scope) -> WireType {
        let first = path[0]
        let arguments = self.arguments(
            of: found, first.arguments.map { read($0, scope) }, outer: scope.bindings,
            at: scope.location(of: first.node))
        return resolve(path.dropFirst(), in: found, arguments, scope, at: first.node)
    }

    /// Returns the arguments for all generic parameters of a type. The arguments of enclosing types come from the
    /// scope.
    private func arguments(
        of type: DeclaredType, _ ownArguments: [WireType], outer: [String: WireType], at location: SourcePosition
    ) -> [WireType] {
        let names = type.genericParameters
        let missing =
            ownArguments.count > names.count || names.dropLast(ownArguments.count).contains { outer[$0] == nil }
        if missing {
            problems.error(
                location,
                "'\(type.qualifiedName)' requires its generic arguments here: \(names.joined(separator: ", "))")
            return names.map { _ in .unknown }
        }
        return names.dropLast(ownArguments.count).map { outer[$0] ?? .unknown } + ownArguments
    }

    /// Resolves the remaining names in a type.
    private func resolve(
        _ remaining: ArraySlice<Component>, in type: DeclaredType, _ arguments: [WireType], _ scope: Scope,
        at node: TypeSyntax? = nil
    ) -> WireType {
        guard let next = remaining.first else {
            return resolveType(type, arguments, at: node.map { scope.location(of: $0) } ?? type.location, scope)
        }
        let bindings = Dictionary(zip(type.genericParameters, arguments)) { first, _ in first }
        if let nested = type.nested[next.name] {
            let ownArguments = next.arguments.map { read($0, scope) }
            let all = self.arguments(of: nested, ownArguments, outer: bindings, at: scope.location(of: next.node))
            return resolve(remaining.dropFirst(), in: nested, all, scope, at: next.node)
        }
        if type.kind == .alias {
            if case .named(let id, let arguments) = resolveType(type, arguments, at: type.location, scope) {
                return resolve(remaining, in: index.types[id], arguments, scope, at: node)
            }
        } else if remaining.count == 1, next.name == "ID",
            let id = storedProperties(of: type).first(where: { $0.name == "id" }),
            let written = id.type
        {
            return read(written, Scope(type.file, in: type, bindings: bindings, integers: scope.integers))
        } else if remaining.count == 1, next.name == "RawValue", let raw = rawValueType(of: type, bindings) {
            return raw
        }
        problems.error(
            scope.location(of: next.node), "'\(type.qualifiedName)' has no known type '\(next.name)'")
        return .unknown
    }

    // MARK: Declared types

    private func resolveType(_ type: DeclaredType, _ arguments: [WireType], at location: SourcePosition, _ scope: Scope)
        -> WireType
    {
        let directives = directives(type.comments, at: type.location)
        switch type.kind {
        case .alias where customTypeName(directives) == nil:
            return alias(type, arguments, integers(directives, else: scope.integers))
        case .protocol where customTypeName(directives) == nil:
            problems.error(
                location,
                "'\(type.qualifiedName)' is a protocol with an unknown JSON form; use an enum "
                    + "with a case for each type")
            return .unknown
        case .actor:
            guard type.node.as(ActorDeclSyntax.self)?.modifiers.isDistributed == true else {
                problems.error(
                    location, "'\(type.qualifiedName)' is an actor that is not distributed, so it is not Codable")
                return .unknown
            }
            return .reference(type.qualifiedName)
        default: break
        }
        if arguments.contains(.unknown) { return .unknown }
        define(type, directives)
        return .named(type.id, arguments)
    }

    private func alias(_ type: DeclaredType, _ arguments: [WireType], _ integers: Integers) -> WireType {
        guard let target = type.node.as(TypeAliasDeclSyntax.self)?.initializer.value else { return .unknown }
        guard openAliases.insert(type.id).inserted else {
            problems.error(type.location, "'\(type.qualifiedName)' refers to itself")
            return .unknown
        }
        defer { openAliases.remove(type.id) }
        let bindings = Dictionary(zip(type.genericParameters, arguments)) { first, _ in first }
        return read(target, Scope(type.file, in: type.parent, bindings: bindings, integers: integers))
    }

    // MARK: Known types

    static let systemModules: Set<String> = [
        "Swift", "Foundation", "FoundationEssentials", "CoreFoundation", "Trebuchet", "TrebuchetServices",
        "TrebuchetServicesModel", "TrebuchetServicesClient", "TrebuchetWire", "Deltas", "SharedState",
    ]

    private func builtInType(_ component: Component, _ scope: Scope) -> WireType? {
        let name = component.name
        let location = scope.location(of: component.node)
        func argument(_ index: Int) -> WireType {
            guard component.arguments.indices.contains(index) else {
                problems.error(location, "'\(name)' requires its generic arguments here")
                return .unknown
            }
            return read(component.arguments[index], scope)
        }
        switch name {
        case "String": return .string
        case "Bool": return .boolean
        case "Int", "Int8", "Int16", "Int32", "UInt", "UInt8", "UInt16", "UInt32":
            return .number(name)
        case "Int64", "UInt64": return wideInteger(name, at: location, scope)
        case "Double", "Float", "Float16", "CGFloat", "TimeInterval", "Float32", "Float64": return .number("Double")
        case "Date": return .date
        case "Data": return .data
        case "UUID": return .uuid
        case "URL": return .url
        case "Decimal": return .decimal
        case "Array", "ContiguousArray", "ArraySlice", "KeyedCollection", "IdentifiedArrayOf":
            return .array(argument(0))
        case "IdentifiedArray": return .array(argument(1))
        case "Set": return .set(argument(0))
        case "Range", "ClosedRange": return .range(argument(0))
        case "Optional": return .optional(argument(0))
        case "Dictionary": return dictionary(argument(0), argument(1), at: location)
        // It writes only its value. As a property wrapper it is handled with the property.
        case "DeltaValue": return argument(0)
        case "TrebuchetActorID": return .string
        case "JSONValue": return .custom("unknown")
        case "JSONObject": return .custom("{ [name: string]: unknown }")
        case "Any", "AnyObject", "Error", "Codable", "Sendable", "Substring", "Character", "Never", "Result", "Void",
            "Int128", "UInt128", "AnyHashable":
            problems.error(location, "'\(name)' cannot be sent; use another type")
            return .unknown
        default: return nil
        }
    }

    private func wideInteger(_ name: String, at location: SourcePosition, _ scope: Scope) -> WireType {
        switch scope.integers {
        case .bigint: return .bigint(name)
        case .number: return .number(name)
        case .unspecified:
            problems.warn(
                location,
                "'\(name)' maps to 'number', which is exact only up to 2^53; write '// trebuchet: bigint' or "
                    + "'// trebuchet: number' above it, or pass --bigint")
            return .number(name)
        }
    }

    func dictionary(_ key: WireType, _ value: WireType, at location: SourcePosition) -> WireType {
        if [key, value].contains(.unknown) { return .unknown }
        switch key {
        case .string, .number("Int"): return .record(key: key, value)
        case .parameter(let name):
            problems.error(
                location,
                "the JSON form of a dictionary depends on its key type, and '\(name)' may be any type; "
                    + "use '[String: …]', or an array of a struct")
            return .unknown
        case .custom:
            problems.error(
                location, "the keys of a dictionary cannot have a type declared by a comment; use an array of a struct")
            return .unknown
        case .named(let id, _):
            if conforms(index.types[id], to: ["CodingKeyRepresentable"]) {
                // The texts of the keys are the names of the members.
                if isTextBacked(model.definitions[id]) { return .record(key: key, value) }
                problems.error(
                    location, "the key form of '\(index.types[id].qualifiedName)' is unknown; use '[String: …]'")
                return .unknown
            }
            switch model.definitions[id]?.form {
            case .rawValues, .id: break
            default: warnOfIdentity(location)
            }
        case .date, .data, .array, .set, .range, .record, .map: warnOfIdentity(location)
        default: break
        }
        return .map(key, value)
    }

    private func isTextBacked(_ definition: ClientModel.Definition?) -> Bool {
        switch definition?.form {
        case .rawValues(let cases):
            cases.allSatisfy { each in
                switch each.value {
                case .string: true
                case .number(let text): Int(text) != nil
                }
            }
        case .id(let raw): raw == .string || raw == .number("Int")
        default: false
        }
    }

    private func warnOfIdentity(_ location: SourcePosition) {
        problems.warn(
            location,
            "keys of this type are objects in JavaScript, and a Map compares objects by identity; use an array of a "
                + "struct")
    }
}
